"""Reads what a GGUF file says about its model, without the weights.

model.gguf ─► [read_metadata] ─► Metadata ─► description of the model, memory of its cache.

The file begins with the letters GGUF, its version, two counts and the entries: key, type, value. Numbers are
little-endian. A text is its length in 8 bytes and its bytes. An array is a type, a length and its items.
"""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import CoreError, invalid

_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_TEXT, _ARRAY = 8, 9
_VERSIONS = (2, 3)
_MOST_ENTRIES = 65536
_MOST_ITEMS = 1024  # of an array that is kept, such as the heads of each layer
_MOST_TEXT = 2**24  # bytes of a text that is kept, such as a chat template
_ARCHITECTURE = "general.architecture"
_VOCABULARY, _TOKENS = "tokenizer.ggml.model", "tokenizer.ggml.tokens"
_NO_TOKENS = ("none", "no_vocab")  # values of the former for models of sounds
_SIZES = ("context_length", "embedding_length", "block_count")  # of every architecture
# Values of general.type or of the architecture → what such a file holds in the place of a model.
_NO_MODELS = {
    "adapter": "an adapter",
    "clip": "an encoder of images or sound",
    "mmproj": "an encoder of images or sound",
    "imatrix": "statistics of a quantization",
}
_LENGTH = struct.Struct("<Q")
_KIND = struct.Struct("<I")


@dataclass(frozen=True)
class Metadata:
    """What a GGUF file says about its model.

    values      key → number, text, or tuple of numbers; long arrays are left out
    tokens      number of a special token → its text
    vocabulary  how many tokens there are
    """

    values: Mapping[str, Any]
    tokens: Mapping[int, str] = field(default_factory=dict)
    vocabulary: int = 0

    @property
    def architecture(self) -> str:
        """Return the name of the architecture, such as "llama"."""
        return str(self.values.get(_ARCHITECTURE, ""))

    def number(self, name: str, default: int = 0) -> int:
        """Return a whole number of the architecture, such as "context_length"; `default` without it."""
        found = self.values.get(f"{self.architecture}.{name}", default)
        return found if isinstance(found, int) else default

    def token(self, name: str) -> str:
        """Return the text of a special token, such as "bos"; "" if the model has none."""
        return self.tokens.get(self.values.get(f"tokenizer.ggml.{name}_token_id", -1), "")

    def cache_numbers(self) -> int:
        """Return how many numbers the cache of keys and values has for each token of a context."""
        layers, heads = self.number("block_count"), self.number("attention.head_count", 1)
        of_layers = self.values.get(f"{self.architecture}.attention.head_count_kv", heads)
        kept = sum(of_layers) if isinstance(of_layers, tuple) else layers * int(of_layers)
        size = self.number("embedding_length") // max(1, heads)
        lengths = (self.number(f"attention.{each}_length", size) for each in ("key", "value"))
        return kept * sum(lengths)


def read_metadata(path: Path) -> Metadata:
    """Return what a GGUF file says. Raises CoreError(INVALID) for a damaged file, and another format."""
    with _opened(path) as reader:
        return reader.metadata()


def check_weights(path: Path) -> None:
    """Raise CoreError(INVALID) if a GGUF file ends before its weights do. The weights are not read."""
    with _opened(path) as reader:
        missing = reader.missing_bytes()
    if missing > 0:
        raise _unreadable(
            path, f"at least {missing} bytes of its weights are missing; copy it again"
        )


def check_model(path: Path, metadata: Metadata) -> None:
    """Raise CoreError(INVALID) unless a file says what llama.cpp needs of every language model.

    The error names the entries that are missing or wrong. llama.cpp would write that to the standard error
    only; without layers it ends the process.
    """
    values, faults = metadata.values, []
    kind = _NO_MODELS.get(values.get("general.type", ""), _NO_MODELS.get(metadata.architecture))
    if kind is not None:
        raise invalid(f"'{path}' holds {kind}, not a language model; copy the file of the model")
    for key in (_ARCHITECTURE, _VOCABULARY):
        if not (isinstance(values.get(key), str) and values[key]):
            faults.append(_fault(values, key, "a text"))
    if isinstance(architecture := values.get(_ARCHITECTURE), str) and architecture:
        for key in [f"{architecture}.{each}" for each in _SIZES]:
            if type(values.get(key)) is not int or values[key] < 1:
                faults.append(_fault(values, key, "a whole number above 0"))
    if not metadata.vocabulary and values.get(_VOCABULARY) not in _NO_TOKENS:
        faults.append(f"'{_TOKENS}' is missing")
    if faults:
        raise invalid(
            f"'{path}' lacks metadata of a language model: {', '.join(faults)}; export the model again"
        )


def _fault(values: Mapping[str, Any], key: str, expected: str) -> str:
    if key not in values:
        return f"'{key}' is missing"
    return f"'{key}' is {values[key]!r:.80}, expected {expected}"


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[_Reader]:
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise _unreadable(path, "it does not begin with the letters GGUF: it is another format")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                yield _Reader(data)
            except struct.error:
                reason = "it ends within its metadata"
                raise _unreadable(path, f"{reason}; copy or export the file again") from None
            except (UnicodeDecodeError, OverflowError, ValueError) as error:
                raise _unreadable(path, f"{error}; copy or export the file again") from None


def _unreadable(path: Path, reason: str) -> CoreError:
    return invalid(f"'{path}' is not a readable GGUF file: {reason}")


class _Reader:
    """Reads the entries from the first to the last."""

    def __init__(self, data: mmap.mmap):
        self._data = data
        self._at = 4
        self._tokens = (0, 0)  # where their texts begin, and how many there are

    def metadata(self) -> Metadata:
        (version, _, entries) = self._unpack(struct.Struct("<IQQ"))
        if version not in _VERSIONS:
            raise ValueError(f"its version is {version}, and versions {_VERSIONS} are known")
        if entries > _MOST_ENTRIES:
            raise ValueError(f"it has {entries} entries, at most {_MOST_ENTRIES} are allowed")
        values = {}
        for _ in range(entries):
            key = self._text()
            (kind,) = self._unpack(_KIND)
            value = self._array(key) if kind == _ARRAY else self._value(kind)
            if value is not None:
                values[key] = value
        return Metadata(values, self._special(values), self._tokens[1])

    def missing_bytes(self) -> int:
        """Return how many bytes the file lacks for its weights to begin where it says, at least."""
        metadata = self.metadata()
        (_, tensors, _) = struct.Struct("<IQQ").unpack_from(self._data, 4)
        if tensors > _MOST_ENTRIES:
            raise ValueError(f"it has {tensors} tensors, at most {_MOST_ENTRIES} are allowed")
        last = 0
        for _ in range(tensors):
            self._text()
            (rank,) = self._unpack(_KIND)
            self._at += 8 * rank + 4  # sizes, type
            last = max(last, self._unpack(_LENGTH)[0] + 1)
        alignment = metadata.values.get("general.alignment", 32)
        whole = alignment if isinstance(alignment, int) and 0 < alignment <= 1 << 20 else 32
        begin = -(-self._at // whole) * whole
        return (begin + last if tensors else self._at) - len(self._data)

    def _unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        found = form.unpack_from(self._data, self._at)
        self._at += form.size
        return found

    def _text(self) -> str:
        (length,) = self._unpack(_LENGTH)
        if length > min(_MOST_TEXT, len(self._data) - self._at):
            raise ValueError(f"a text of {length} bytes begins at byte {self._at}")
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def _value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self._text()
        return self._unpack(_number(kind))[0]

    def _array(self, key: str) -> tuple[Any, ...] | None:
        """Return the numbers of a short array; None for a long array and for texts, which are skipped.

        Remembers where the texts of the tokens are.
        """
        (kind, length) = self._unpack(struct.Struct("<IQ"))
        if kind == _TEXT:
            if key == _TOKENS:
                self._tokens = (self._at, length)
            for begin, size in self._texts(self._at, length):
                self._at = begin + size
            return None
        size = _number(kind).size * length
        if size > len(self._data) - self._at:
            raise ValueError(f"'{key}' has {length} items, which the file does not hold")
        begin, self._at = self._at, self._at + size
        if length > _MOST_ITEMS:
            return None
        return struct.unpack_from(f"<{length}{_NUMBERS[kind]}", self._data, begin)

    def _texts(self, at: int, length: int) -> Iterator[tuple[int, int]]:
        """Yield where each text of an array begins, and its length in bytes."""
        for _ in range(length):
            (size,) = _LENGTH.unpack_from(self._data, at)
            if size > len(self._data) - at:
                raise ValueError(f"a text of {size} bytes begins at byte {at}")
            yield at + _LENGTH.size, size
            at += _LENGTH.size + size

    def _special(self, values: Mapping[str, Any]) -> dict[int, str]:
        """Return number → text of each token that an entry such as tokenizer.ggml.bos_token_id names."""
        wanted = {values[key] for key in values if key.endswith("_token_id")}
        found = {}
        for number, (begin, size) in enumerate(self._texts(*self._tokens)):
            if number in wanted:
                found[number] = self._data[begin : begin + size].decode(errors="replace")
                if len(found) == len(wanted):
                    break
        return found


def _number(kind: int) -> struct.Struct:
    if kind not in _NUMBERS:
        raise ValueError(f"an entry has the unknown type {kind}")
    return struct.Struct("<" + _NUMBERS[kind])
