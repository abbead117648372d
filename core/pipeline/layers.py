"""Layers: what plugins put around the way of a request through one model.

admit ─► [Layered] ─► layer ─► layer ─► cache ─► queue ─► …  Composed once, at load, from what the hook
core_layers gives; a model without layers has no Layered.

    def layer(handler):
        def with_time(request):              # on the loop thread, for every request of the model
            begun = time.monotonic_ns()
            reply = handler(request)         # raises CoreError for what is refused at once
            ...
            return reply
        return with_time

The request has been admitted: its inputs fit the model. A layer returns the reply of the inner handler, or a
Reply of its own that it sends the answers to (`inner.listen(...)`, since a Reply has one listener); it may
answer alone, or later. Every Reply must end: what waits for requests in flight waits for it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core import plugins
from core.backend import Model
from core.errors import CoreError, internal
from core.pipeline.intake import Handler, Intake
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply

Layer = Callable[[Handler], Handler]


class Layered:
    """The layers of one model version around `inner`. Loop thread only.

    Invariant: the door has counted each request in, and here it is counted out when the outermost reply ends.
    The pipeline counts out what reaches it, so that is counted in once more on the way there. A layer may
    then answer alone, later, or ask twice.
    """

    def __init__(self, layers: Sequence[Layer], inner: Handler, intake: Intake):
        self._inner = inner
        self._intake = intake
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
        told = Reply(request)
        reply.listen(_Last(told, self._intake))
        return told

    def _enter(self, request: InferenceRequest) -> Reply:
        """What the innermost layer calls."""
        self._intake.enter()
        try:
            return self._inner(request)
        except BaseException:
            self._intake.ended()
            raise


class _Last:
    """Passes each item on, and counts the request out after the last."""

    def __init__(self, reply: Reply, intake: Intake):
        self._reply = reply
        self._intake = intake

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        self._reply.send(item, final)
        if final:
            self._intake.ended()


def layers_of(model: Model) -> list[Layer]:
    """The layers that plugins have for a model, the outermost first.

    Raises CoreError(INTERNAL) for a hook that fails or gives something else.
    """
    found: list[Layer] = []
    for plugin, layers in plugins.ask_each("core_layers", model=model):
        if not isinstance(layers, Sequence) or not all(map(callable, layers)):
            raise internal(
                f"plugin '{plugin}': core_layers returned {layers!r}, not a list of functions"
            )
        found.extend(layers)
    return found
