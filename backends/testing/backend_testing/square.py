"""square: a decoupled model. A request contains the number of answers."""

from __future__ import annotations

import core
from backend_testing import native
from backend_testing.configuration import NativeInstance, require, whole_number


class Square(core.Model):
    def load(self) -> None:
        require(self.config, (("IN", "INT32", [1]),), (("OUT", "INT32", [1]),))


class SquareInstance(NativeInstance):
    def open(self) -> None:
        delays = ("INFER_DELAY_NS", "OUTPUT_DELAY_NS", "CANCEL_DELAY_NS")
        names = (*delays, "FAIL_COUNT", "EMPTY_COUNT")
        self.run(native.Square(*(whole_number(self.model, f"CUSTOM_{each}") for each in names)))


square = core.Backend(model=Square, instance=SquareInstance)
