"""Layers: handlers of plugins around a model's handler.

admit ─► [Layered] ─► layer ─► layer ─► cache ─► queue ─► …  Composed once, when the model loads, from the
results of the hook core_layers. A model without layers has no Layered.

    def layer(handler):
        def with_time(request):              # on the event loop, for every request of the model
            begun = time.monotonic_ns()
            reply = handler(request)         # raises CoreError to refuse the request
            ...
            return reply
        return with_time

The request is admitted: its inputs fit the model. A layer returns the reply of the inner handler, or a new
Reply to which it sends the items of the inner one (`inner.listen(...)`; a Reply has one listener). It may
answer by itself, or later. Every Reply must end: draining the model waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core import plugins
from core.backend import Model
from core.errors import CoreError, internal
from core.pipeline.endpoint import Handler, InFlightRequests
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply

Layer = Callable[[Handler], Handler]


class Layered:
    """Handler that runs the layers of one model version around `inner`.

    Invariant: the endpoint has counted the request; this class uncounts it when the outermost reply ends. The
    pipeline uncounts each request that reaches it, so `_enter` counts it once more. A layer may therefore
    answer by itself, answer later, or call the inner handler twice. If it raises, the endpoint uncounts the
    request; an error other than CoreError becomes CoreError(INTERNAL).
    Not thread-safe: call from the event loop only.
    """

    def __init__(self, layers: Sequence[Layer], inner: Handler, in_flight: InFlightRequests):
        self.inner = inner
        self._in_flight = in_flight
        outer: Handler = self._enter
        for layer in reversed(layers):
            outer = layer(outer)
        self._outer = outer

    def __call__(self, request: InferenceRequest) -> Reply:
        try:
            reply = self._outer(request)
        except CoreError:
            raise
        except Exception as error:
            raise internal(
                f"a layer of a plugin failed: {type(error).__name__}: {error}"
            ) from error
        outer = Reply(request)
        reply.listen(_Forward(outer, self._in_flight))
        return outer

    def _enter(self, request: InferenceRequest) -> Reply:
        """Count the request and call `inner`; uncount it on an error. The innermost layer calls this."""
        self._in_flight.enter()
        try:
            return self.inner(request)
        except BaseException:
            self._in_flight.leave()
            raise


class _Forward:
    """Listener that sends each item on, and uncounts the request after the final one."""

    def __init__(self, reply: Reply, in_flight: InFlightRequests):
        self._reply = reply
        self._in_flight = in_flight

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        self._reply.send(item, final)
        if final:
            self._in_flight.leave()


def layers_of(model: Model) -> list[Layer]:
    """Return the layers of plugins for a model, the outermost first.

    Raise what `plugins.ask_each` raises, and CoreError(INTERNAL) for what is no list of functions.
    """
    found: list[Layer] = []
    for plugin, layers in plugins.ask_each("core_layers", model=model):
        if not isinstance(layers, Sequence) or not all(map(callable, layers)):
            raise internal(
                f"plugin '{plugin}': core_layers returned {layers!r}, not a list of functions"
            )
        found.extend(layers)
    return found
