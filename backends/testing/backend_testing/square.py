"""square: a decoupled model. A request contains the number of answers."""

from __future__ import annotations

import core
from backend_testing import native
from backend_testing.configuration import require, whole_number


class Square(core.Model):
    def load(self) -> None:
        require(self.config, (("IN", "INT32", [1]),), (("OUT", "INT32", [1]),))


class SquareInstance(core.ModelInstance):
    def open(self) -> None:
        self._instance = native.Square(
            whole_number(self.model, "CUSTOM_INFER_DELAY_NS"),
            whole_number(self.model, "CUSTOM_OUTPUT_DELAY_NS"),
            whole_number(self.model, "CUSTOM_CANCEL_DELAY_NS"),
            whole_number(self.model, "CUSTOM_FAIL_COUNT"),
            whole_number(self.model, "CUSTOM_EMPTY_COUNT"),
        )
        self.native = self._instance.capsule()

    def close(self) -> None:
        self._instance.close()


square = core.Backend(model=Square, instance=SquareInstance)
