"""repeat: a decoupled model. A request contains the answers and the times between them."""

from __future__ import annotations

import core
from backend_testing import native
from backend_testing.configuration import NativeInstance, invalid, require

INPUTS = (("IN", "INT32", [-1]), ("DELAY", "UINT32", [-1]), ("WAIT", "UINT32", [1]))
OUTPUTS = (("OUT", "INT32", [1]), ("IDX", "UINT32", [1]))


class Repeat(core.Model):
    def load(self) -> None:
        if self.config.max_batch_size:
            raise invalid(self.config, "has a max_batch_size; repeat answers request by request")
        require(self.config, INPUTS, OUTPUTS)


class RepeatInstance(NativeInstance):
    def open(self) -> None:
        self.run(native.Repeat())


repeat = core.Backend(model=Repeat, instance=RepeatInstance)
