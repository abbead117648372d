"""TfServingOptions: the flags of TensorFlow Serving's APIs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.options import Listener, Options, Section, group
from core.options.values import BOOL, PORT
from frontends.http.options import HttpOptions

_tfserving = group("TensorFlow Serving")


@dataclass(kw_only=True)
class TfServingOptions(Section):
    """The flags of TensorFlow Serving's APIs."""

    # fmt: off
    allow_tfserving: bool = _tfserving(BOOL, True,
        "Serve the APIs of TensorFlow Serving on the HTTP port and the gRPC port (docs/serve/tfserving.md).")
    tfserving_port: int = _tfserving(PORT, 0,
        "Port that serves the REST API of TensorFlow Serving alone, in addition to the HTTP port. 0: no such "
        "port.")
    # fmt: on

    def listeners(self, options: Options) -> Sequence[Listener]:
        """Return the port of its own, if there is one."""
        if not (self.allow_tfserving and self.tfserving_port):
            return ()
        address = HttpOptions.of(options).http_address
        return (Listener("tfserving", "TensorFlow Serving", address, self.tfserving_port),)
