"""FunctionServer: an EmbeddedServer that serves inference functions."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.in_process.functions.backend import FunctionBackend
from tritonserver_core.embedded import EmbeddedServer
from tritonserver_core.pytriton.functions import (
    ASYNC,
    PLAIN,
    AsyncFunctionInstance,
    Handler,
    PlainFunctionInstance,
    bound_model,
)

_INSTANCES = {PLAIN: PlainFunctionInstance, ASYNC: AsyncFunctionInstance}


class FunctionServer(EmbeddedServer):
    """Any thread but the server's, unless core.Server says otherwise."""

    def serve_functions(self, handlers: Sequence[Handler], is_async: bool) -> None:
        """Load functions as a model; return when it is ready. Raises CoreError if that fails."""
        lifetime = self._lifetime
        for name, instance in _INSTANCES.items():
            if name not in lifetime._backends:
                lifetime._backends[name] = FunctionBackend(
                    lifetime._repository, self._dispatcher, name, instance
                )
        self._run(lambda: lifetime.bind(bound_model(handlers, is_async)))
