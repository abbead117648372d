"""Paths of the command line → files → items."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from core import dtypes
from core.config import Signature
from core.errors import invalid, not_found
from core.tensor import Tensor
from core_jobs.offline.inputs.arrays import read_npy, read_npz
from core_jobs.offline.inputs.fitting import is_batched, only_input, tensor_of_file
from core_jobs.offline.inputs.json_lines import read_lines
from core_jobs.offline.inputs.texts import groups, request_of_lines, text_input
from core_jobs.offline.item import Item, Request
from core_jobs.offline.outputs.folder import ERRORS, RESULTS, RUN
from core_jobs.offline.outputs.forms import is_output

OTHER_READERS = "core.run_inputs"
"""Entry points that read the inputs of other distributions, such as captures (docs/write/plugins.md):

    read(path: str, model: str) -> Iterator[tuple[str, int, Mapping[str, Any]]] | None

The iterator gives for each request its source, its bytes, and {"id": str, "parameters": {name: value},
"inputs": {name: (datatype, shape, data in the binary form of the v2 protocol)}}. The order is the same each
time. None is for a path of another form. It raises CoreError.
"""

LINES = (".jsonl", ".ndjson")
_Reader = Callable[[str, str], Iterator[tuple[str, int, Mapping[str, Any]]] | None]


@dataclass(frozen=True)
class Inputs:
    """The input files of a run, in their order.

    rows         rows of an array, or lines of a text, in one request
    input_name   which input files without names feed; "" for the only one
    output       folder of the results, which are no inputs; None without one
    """

    files: Sequence[Path]
    rows: int = 1
    input_name: str = ""
    output: Path | None = None

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(each.stat().st_size for path in self.files for each in self._below(path))

    def fingerprint(self) -> str:
        """Return a text that changes with the files and with how they become requests."""
        found = sha256(f"{self.rows} {self.input_name}".encode())
        for path in (each for entry in self.files for each in self._below(entry)):
            state = path.stat()
            found.update(f"{path.absolute()}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
        return found.hexdigest()

    def items(self, signature: Signature) -> Iterator[Item]:
        """Yield the items of all files. Raises CoreError for a file that cannot be read."""
        readers = [entry.load() for entry in entry_points(group=OTHER_READERS)]
        for path in self.files:
            if (others := _of_others(readers, path, signature)) is not None:
                yield from others
            else:
                for each in self._below(path):
                    yield from self._of(each, signature)

    def check_input_name(self) -> None:
        """Raise CoreError(INVALID) for an `input_name` that no file needs."""
        files = [each for path in self.files for each in self._below(path)]
        names = all(each.suffix.lower() in (*LINES, ".npz") for each in files)
        if self.input_name and files and names:
            raise invalid(
                f"--input-name={self.input_name}: each file of --input names its inputs, as JSON lines and "
                ".npz do; leave the option out"
            )

    def _below(self, path: Path) -> list[Path]:
        return below(path, self.output)

    def _of(self, path: Path, signature: Signature) -> Iterator[Item]:
        suffix = path.suffix.lower()
        if suffix in LINES:
            return read_lines(path, signature)
        if suffix == ".npy":
            return read_npy(path, signature, self.input_name, self.rows)
        if suffix == ".npz":
            return read_npz(path, signature, self.rows)
        if suffix == ".txt":
            return self._of_text(path, signature)
        return self._of_file(path, signature)

    def _of_text(self, path: Path, signature: Signature) -> Iterator[Item]:
        spec = text_input(str(path), signature, self.input_name)
        rows = self.rows if is_batched(spec, signature) else 1
        with open(path, "rb") as file:
            for first, lines in groups(file, rows):
                request = partial(request_of_lines, lines, spec, signature)
                yield Item(f"{path}:{first}", sum(map(len, lines)), request)

    def _of_file(self, path: Path, signature: Signature) -> Iterator[Item]:
        spec = only_input(signature, self.input_name)

        def request() -> Request:
            try:
                data = path.read_bytes()
            except OSError as error:
                raise invalid(f"'{path}' cannot be read: {error.strerror}") from None
            return Request({spec.name: tensor_of_file(spec, is_batched(spec, signature), data)})

        yield Item(str(path), path.stat().st_size, request)


def found_files(texts: Sequence[str], output: Path | None = None) -> list[Path]:
    """Return the files and folders that paths and patterns name.

    output   folder of the results: patterns do not find what is in it
    Raises CoreError(NOT_FOUND) for a path or a pattern that names nothing, and for a folder without files.
    """
    found: list[Path] = []
    for text in texts:
        path = Path(text)
        if path.exists():
            matching = [path]
        else:
            named = sorted(map(Path, glob.glob(text, recursive=True)))
            matching = [each for each in named if not _is_result(each, output)]
        if not matching:
            raise not_found(f"there is no file or folder '{text}', and no file matches it")
        if path.is_dir() and not below(path, output):
            beside = "" if output is None else f" beside those of --output '{output}'"
            raise not_found(f"the folder '{text}' has no files{beside if below(path) else ''}")
        found += matching
    return found


def below(path: Path, output: Path | None = None) -> list[Path]:
    """Return a file, or all files below a folder that are not hidden, sorted by name.

    output   folder whose files are left out if it is below `path`; else only results in it are
    """
    if not path.is_dir():
        return [path]
    left_out: tuple[str, ...] = ("/",)  # is the beginning of no path below another
    if output is not None and _is_within(output, path) and not _is_within(path, output):
        left_out = output.resolve().relative_to(path.resolve()).parts
    found = []
    for each in path.rglob("*"):
        parts = each.relative_to(path).parts
        is_hidden = any(part.startswith(".") for part in parts)
        if is_hidden or parts[: len(left_out)] == left_out or _is_result(each, output):
            continue
        if each.is_file():
            found.append(each)
    return sorted(found)


def _is_result(path: Path, output: Path | None) -> bool:
    """Return whether a path is that of a file which `core run` writes into its folder of results."""
    if output is None or path.resolve().parent != output.resolve():
        return False
    return path.name in (RUN, RESULTS, ERRORS) or is_output(path.name)


def _is_within(path: Path, folder: Path | None) -> bool:
    return folder is not None and path.resolve().is_relative_to(folder.resolve())


def _of_others(
    readers: Sequence[_Reader], path: Path, signature: Signature
) -> Iterator[Item] | None:
    """Return the items of what another distribution reads, such as a capture; None if none knows the path."""
    for read in readers:
        if (found := read(str(path), signature.name)) is not None:
            return (Item(source, size, partial(_request_of, each)) for source, size, each in found)
    return None


def _request_of(found: Mapping[str, Any]) -> Request:
    inputs = {
        name: Tensor(name, dtypes.BY_NAME[datatype], shape, raw=data)
        for name, (datatype, shape, data) in found["inputs"].items()
    }
    return Request(inputs, found["id"], found["parameters"])
