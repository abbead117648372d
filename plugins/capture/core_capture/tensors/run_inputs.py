"""The requests of a capture for `core run`: whole, one after another, in the order of their beginnings."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

from core.errors import invalid
from core_capture.records.reader import CaptureReader, Place
from core_capture.records.record import Damaged
from core_capture.tensors.forms import requests_of
from core_capture.tensors.input_data import is_capture
from core_capture.tensors.message import InferMessage, Unreadable

logger = logging.getLogger("core")

RunRequest = tuple[str, int, dict[str, Any]]
_OF_FORMS = ("binary_data", "binary_data_output", "triton_enable_empty_final_response")


def requests_for_run(path: str, model: str) -> Iterator[RunRequest] | None:
    """Return the requests for a model, as core.run_inputs wants them; None for a path without a capture.

    One record is in memory at a time. Requests that are cut, redacted or of another protocol are left out;
    the log has how many. The iterator raises CoreError(INVALID) if no request is left.
    """
    return _requests(CaptureReader(path), model) if is_capture(path) else None


def _requests(reader: CaptureReader, model: str) -> Iterator[RunRequest]:
    skipped: Counter[str] = Counter()
    count = 0
    for place, known in reader.places():
        if known.model != model:
            continue
        try:
            found, size = _read(reader, place, model)
        except (Damaged, Unreadable) as error:
            skipped[str(error)] += 1
            continue
        for number, request in enumerate(found):
            count += 1
            part = f".{number}" if len(found) > 1 else ""
            yield f"{place.path}:{place.at}{part}", size // len(found), _plain(request)
    reasons = "; ".join(f"{number}: {reason}" for reason, number in skipped.items())
    if not count:
        why = f"; {reasons}" if reasons else ""
        raise invalid(f"the capture has no usable requests for model '{model}'{why}")
    if skipped:
        logger.warning("'%s': requests are left out: %s", reader.path, reasons)


def _read(reader: CaptureReader, place: Place, model: str) -> tuple[list[InferMessage], int]:
    """Return the requests in a record, and its bytes. Raises Damaged and Unreadable."""
    record = reader.read(place)
    if record.redacted:  # a body that cannot be redacted is cut
        raise Unreadable("tensors were redacted")
    if record.cut:
        raise Unreadable("too many bytes were sent, and not recorded")
    found = [each for each in requests_of(record) if each.model in ("", model)]
    for request in found:
        for tensor in request.tensors:
            tensor.array()  # raises Unreadable if its data are not there, or have another size
    return found, len(record.body)


def _plain(request: InferMessage) -> dict[str, Any]:
    parameters = {
        name: value for name, value in request.parameters.items() if name not in _OF_FORMS
    }
    inputs = {each.name: (each.datatype, each.shape, each.raw or b"") for each in request.tensors}
    return {"id": request.id, "parameters": parameters, "inputs": inputs}
