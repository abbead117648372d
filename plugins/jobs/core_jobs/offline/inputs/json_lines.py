"""Files of JSON lines: each line a request of the v2 protocol, or an object with a value for each input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from core.config import Signature
from core.errors import invalid
from core.request import NEWEST
from core_jobs.offline.inputs.fitting import is_batched, tensor_of_value
from core_jobs.offline.item import Item, Request
from frontends.http.codec.parse import parse
from frontends.shared.memory import SharedMemoryRegions

_NO_REGIONS = SharedMemoryRegions(False)
_MOST_BYTES = 2**31 - 1


def read_lines(path: Path, signature: Signature) -> Iterator[Item]:
    """Yield an item for each line that is not empty."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                read = partial(read_line, line, signature)
                yield Item(f"{path}:{number}", len(line), read)


def read_line(line: bytes, signature: Signature) -> Request:
    """Return the request in a line. Raises CoreError(INVALID)."""
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        document = None  # the other reader takes NaN, and says what is wrong
    if document is None or (isinstance(document, dict) and _is_request(document)):
        found, _ = parse(signature.name, NEWEST, signature, {}, line, _MOST_BYTES, _NO_REGIONS)
        return Request(found.inputs, found.id, found.parameters)
    if not isinstance(document, dict):
        raise invalid("a line is no JSON object; expected one with a value for each input")
    return Request({name: _tensor(name, value, signature) for name, value in document.items()})


def _is_request(document: dict[str, Any]) -> bool:
    inputs = document.get("inputs")
    return isinstance(inputs, list) and all(
        isinstance(each, dict) and "name" in each for each in inputs
    )


def _tensor(name: str, value: Any, signature: Signature) -> Any:
    if (spec := signature.inputs.get(name)) is None:
        raise invalid(
            f"model '{signature.name}' has no input '{name}'; it has {', '.join(signature.inputs)}"
        )
    return tensor_of_value(spec, is_batched(spec, signature), value)
