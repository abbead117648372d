"""Draft: the folder of a model while it is written, beside the repository, and its move into it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from google.protobuf import text_format
from google.protobuf.message import Message

from core.config import ModelConfig
from core.errors import invalid
from core.repository import is_folder_name
from core_importers import unpacking
from core_importers.declared import Declared, merged, parsed
from core_importers.documents import requirements_in
from core_importers.wishes import Wishes

_ADAPTERS = Path(__file__).parent / "adapters"


class Draft:
    """A model that is being imported; `with` removes what was not moved into the repository.

    name     of the model; a reader replaces the default by that of the source
    config   its config.pbtxt
    kind     what the source is, for the report
    needs    requirements of the model where it runs, such as "torch" or "mlflow==3.1"
    notes    sentences for the user: what was not taken, what differs, what to set
    """

    def __init__(self, repository: Path, wishes: Wishes):
        self.name = ""
        self.kind = ""
        self.config = ModelConfig()
        self.needs: list[str] = []
        self.notes: list[str] = []
        self.wishes = wishes
        self._requirements = ""
        self._repository = repository
        self._staging = _staging(repository)
        self.folder = self._staging / "new"
        self.version = self.folder / "1"
        self.version.mkdir(parents=True)

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._staging, ignore_errors=True)

    @property
    def source(self) -> Path:
        """The folder for the files of the source, unchanged: 1/source."""
        return self.version / "source"

    def copy(self, source: Path, place: str) -> None:
        """Copy a file or folder to `place` in the version's folder."""
        unpacking.copy(source, self.version / place)

    def adapter(self, name: str, *others: str) -> None:
        """Make adapters/NAME.py the model.py of the model; copy the others beside it, folders too."""
        self.config.backend = "python"
        self.copy(_ADAPTERS / f"{name}.py", "model.py")
        for other in others:
            self.copy(_ADAPTERS / other, other)

    def parameter(self, key: str, value: str) -> None:
        self.config.parameters[key].string_value = value

    def stand_in(self, package: str, distribution: str, missing: Iterable[str]) -> None:
        """Copy the stand-in of a package; if it misses something, the installed package is used.

        package   of adapters/compat, which is also its import name
        missing   what the source imports and the stand-in has not
        """
        if left := sorted(missing):
            self.parameter("USE_PACKAGE", distribution)
            self.need(distribution)
            self.notes.append(
                f"it uses {', '.join(left)}: the package {distribution} must be installed"
            )
        else:
            self.copy(_ADAPTERS / "compat" / package, f"compat/{package}")

    def tensors(self, inputs: list[Declared], outputs: list[Declared]) -> None:
        """Write inputs and outputs into the configuration, with those of the command line."""
        for each in merged(inputs, self.wished_inputs):
            dims, datatype = each.dims, f"TYPE_{each.datatype}"
            self.config.input.add(
                name=each.name, data_type=datatype, dims=dims, optional=each.optional
            )
        for each in merged(outputs, self.wished_outputs):
            self.config.output.add(
                name=each.name, data_type=f"TYPE_{each.datatype}", dims=each.dims
            )

    @property
    def wished_inputs(self) -> list[Declared]:
        return [parsed(each) for each in self.wishes.inputs]

    @property
    def wished_outputs(self) -> list[Declared]:
        return [parsed(each) for each in self.wishes.outputs]

    def batched(self, rows: int, delay_s: float) -> None:
        """Let the server batch up to `rows` requests; 1 means that requests execute alone."""
        if rows > 1:
            self.config.max_batch_size = rows
            self.config.dynamic_batching.max_queue_delay_microseconds = round(delay_s * 1e6)

    def instances(self, count: int) -> None:
        if count > 1:
            self.config.instance_group.add(count=count, kind="KIND_CPU")

    def need(self, *packages: str) -> None:
        """Add requirements, except those of packages that `needs` names already, with whatever version."""
        there = {name_of(each) for each in self.needs}
        self.needs += [each for each in packages if name_of(each) not in there]

    def trust(self, file: str) -> None:
        """Let the server read the pickle `file` if the command line says --trust; otherwise add a note."""
        if self.wishes.trusted:
            self.parameter("TRUSTED", "true")
            return
        self.notes.append(
            f"{file} is a pickle: reading it runs the code in it, so the server refuses it. If you trust its "
            "author, import again with --force --trust"
        )

    def requirements(self, packages: Iterable[str], file: str) -> None:
        """Add the requirements of the source, which are in `file` of the version's folder."""
        self.need(*packages)
        self._requirements = file if (self.version / file).is_file() else ""

    def _environment(self) -> None:
        """Let the server install numpy, the requirements of the source and `needs` for the model.

        Write them to requirements.txt, which the parameter REQUIREMENTS names. If the model's backend is not
        python, or it needs no package, add a note instead.
        """
        # Adapters and backends are the server's, not the model's.
        needs = [each for each in self.needs if not each.startswith(("core-", "backend-"))]
        if self.config.backend != "python" or not needs:
            self.notes.append("--environment has no effect: the model needs no package of its own")
            return
        lines = [f"-r {self._requirements}"] if self._requirements else []
        there = requirements_in(self.version / self._requirements) if self._requirements else []
        lines += [each for each in needs if each not in there]
        lines += [] if any(name_of(each) == "numpy" for each in needs) else ["numpy"]
        (self.version / "requirements.txt").write_text("\n".join(lines) + "\n", "utf-8")
        self.parameter("REQUIREMENTS", "requirements.txt")

    def finish(self) -> Path:
        """Write config.pbtxt and move the model into the repository; return its folder.

        Raises CoreError(INVALID) for an invalid name, or a model of that name without `force`. Raises OSError
        if the folder cannot be moved; a model that was to be replaced stays.
        """
        self.name = (self.wishes.name or self.name).strip()
        if not is_folder_name(self.name) or ".." in self.name:
            raise invalid(f"invalid model name '{self.name}'; --name NAME sets another")
        target = self._repository / self.name
        if target.exists() and not self.wishes.force:
            raise invalid(
                f"'{target}' exists already; --force replaces it, --name NAME imports beside it"
            )
        if self.wishes.environment:
            self._environment()
        (self.folder / "config.pbtxt").write_text(f"# {self.kind}\n{_text(self.config)}", "utf-8")
        self._repository.mkdir(parents=True, exist_ok=True)
        old = self._staging / "old"
        if target.exists():
            shutil.move(target, old)
        try:
            shutil.move(self.folder, target)
        except OSError:
            if old.exists():  # else it would go with the staging folder
                shutil.rmtree(target, ignore_errors=True)
                shutil.move(old, target)
            raise
        self.folder, self.version = target, target / "1"
        return target


def name_of(requirement: str) -> str:
    """Return the name of the package in a requirement, in lower case."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower()


def _text(config: ModelConfig) -> str:
    """Return a configuration as text, each input, output and parameter in one line."""
    lines = []
    for field, value in sorted(config.ListFields(), key=lambda found: _order(found[0].name)):
        if field.name == "parameters":
            values = [(f'key: "{key}"', value[key]) for key in sorted(value)]
            lines += [f"parameters {{ {key} value {{ {_line(each)} }} }}" for key, each in values]
        elif field.message_type is not None:
            several = value if isinstance(value, Sequence) else [value]
            lines += [f"{field.name} {{ {_line(each)} }}" for each in several]
        else:
            lines.append(
                f'{field.name}: "{value}"' if field.name == "backend" else f"{field.name}: {value}"
            )
    return "\n".join(lines) + "\n"


def _order(name: str) -> int:
    known = ("backend", "max_batch_size", "input", "output")
    return known.index(name) if name in known else len(known)


def _line(message: Message) -> str:
    return text_format.MessageToString(
        message, as_one_line=True, use_short_repeated_primitives=True, as_utf8=True
    )


def _staging(repository: Path) -> Path:
    """Return a new folder beside the repository, so that a server that polls it never sees half a model.

    If nothing may be written there, the folder is among the temporary ones.

    Raises CoreError(INVALID) if the repository is a file, or is itself a model.
    """
    if repository.exists() and not repository.is_dir():
        raise invalid(f"'{repository}' is a file; REPOSITORY is the folder that holds the models")
    if (repository / "config.pbtxt").exists():
        raise invalid(
            f"'{repository}' is a model, it has a config.pbtxt; REPOSITORY is the folder that holds the "
            f"models: '{repository.absolute().parent}'"
        )
    parent = repository.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    try:
        return Path(tempfile.mkdtemp(prefix=".core-import-", dir=parent))
    except PermissionError:  # only the repository itself may be written
        return Path(tempfile.mkdtemp(prefix="core-import-"))
