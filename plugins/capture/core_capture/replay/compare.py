"""Comparison: whether an answer is that of the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core_capture.records.record import Record
from core_capture.replay.masking import masked
from core_capture.replay.outcome import Outcome
from core_capture.tensors.forms import answers_of
from core_capture.tensors.message import InferMessage, TensorValue, Unreadable

IDS = ("id", "created", "system_fingerprint")
"""Members of JSON that a server makes anew for each answer (masking.py)."""

_ENDED_BY_CLIENTS = (1, 4)  # CANCELLED, DEADLINE_EXCEEDED
_SHOWN = 60  # bytes of an answer in a difference


@dataclass(frozen=True)
class Comparison:
    """How answers are compared.

    exact       bytes must be equal; else values of tensors
    tolerance   largest difference of two floats, absolute, or as a share of the recorded one
    ignored     members of the JSON of an answer whose values are not compared
    """

    exact: bool = False
    tolerance: float = 0.0
    ignored: Sequence[str] = IDS

    def difference(self, record: Record, outcome: Outcome, sent: Record) -> str:
        """Return how an answer differs from the recorded one; "" if it does not.

        sent   the record in the form in which it was sent: its protocol may be another one
        """
        if sent.protocol != record.protocol:
            return self._across(record, outcome, sent)
        if record.status != outcome.status:
            found = _shown(outcome.answer) if outcome.answer else outcome.text
            return f"status {record.status}, now {outcome.status}{': ' * bool(found)}{found}"
        if record.protocol == "grpc" and record.failed:
            text = record.grpc_message
            # A client that cancels, or whose deadline passes, has a text of its own.
            if text != outcome.text and (text or record.status not in _ENDED_BY_CLIENTS):
                return f"error {_shown(text.encode())}, now {_shown(outcome.text.encode())}"
        before, now = record.answer, outcome.answer
        if record.protocol == "http":
            before = masked(record.path, record.answer_fields, before, self.ignored)
            now = masked(record.path, outcome.fields, now, self.ignored)
        if before == now:
            return ""
        if not self.exact:
            try:
                return self._of_tensors(
                    answers_of(
                        record.path, record.answer_fields, [each.data for each in record.sent]
                    ),
                    answers_of(record.path, outcome.fields, outcome.messages),
                )
            except Unreadable:
                pass  # not of the v2 protocol: bytes count
        same = (a == b for a, b in zip(before, now, strict=False))
        at = next((i for i, each in enumerate(same) if not each), min(len(before), len(now)))
        return f"answers differ at byte {at}: {_shown(before[at:])}, now {_shown(now[at:])}"

    def _across(self, record: Record, outcome: Outcome, sent: Record) -> str:
        """Compare an answer with one of the other protocol: tensors, or whether both are errors."""
        failed = outcome.status >= 400 if sent.protocol == "http" else outcome.status != 0
        if record.failed or failed:
            now = f"now {sent.protocol} {outcome.status}"
            same = record.failed and failed
            return (
                "" if same else f"{record.protocol} {record.status}, {now} {outcome.text}".strip()
            )
        try:
            return self._of_tensors(
                answers_of(record.path, record.answer_fields, [each.data for each in record.sent]),
                answers_of(sent.path, outcome.fields, outcome.messages),
            )
        except Unreadable as error:
            return str(error)

    def _of_tensors(self, before: Sequence[InferMessage], now: Sequence[InferMessage]) -> str:
        if len(before) != len(now):
            return f"{len(before)} answers, now {len(now)}"
        for number, (old, new) in enumerate(zip(before, now, strict=True)):
            which = f"answer {number}: " if len(before) > 1 else ""
            if (old.model, old.version) != (new.model, new.version):
                return f"{which}model {old.model} {old.version}, now {new.model} {new.version}"
            names = [each.name for each in old.tensors]
            if names != [each.name for each in new.tensors]:
                return f"{which}outputs {names}, now {[each.name for each in new.tensors]}"
            for one, other in zip(old.tensors, new.tensors, strict=True):
                if found := self._of_tensor(one, other):
                    return f"{which}output '{one.name}' {found}"
        return ""

    def _of_tensor(self, old: TensorValue, new: TensorValue) -> str:
        if (old.datatype, old.shape) != (new.datatype, new.shape):
            return f"is {old.datatype}{list(old.shape)}, now {new.datatype}{list(new.shape)}"
        if old.raw == new.raw:
            return ""
        before, now = old.array(), new.array()
        if before.dtype.kind != "f":
            count = int(np.count_nonzero(before != now))
            return f"differs in {count} of {before.size} elements" if count else ""
        a, b = before.astype(np.float64), now.astype(np.float64)
        with np.errstate(invalid="ignore"):
            apart = np.abs(a - b)
            near = apart <= self.tolerance * np.maximum(1, np.abs(a))
        near |= (a == b) | (np.isnan(a) & np.isnan(b))
        if near.all():
            return ""
        largest = np.nanmax(np.where(near, 0, apart))
        return f"differs in {int(np.count_nonzero(~near))} of {a.size} elements, by at most {largest:.3g}"


def _shown(data: bytes) -> str:
    text = data[:_SHOWN].decode("utf-8", "backslashreplace")
    return repr(text) + ("…" if len(data) > _SHOWN else "")
