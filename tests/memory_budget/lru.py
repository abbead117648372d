"""The oracle: an LRU over a trace of requests, with all sizes known."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping


def hit_rate(trace: Iterable[tuple[str, bool]], sizes: Mapping[str, int], room: int) -> float:
    """Return the part of the requests whose model is loaded when they come.

    trace   model, and whether a request uses it: loads by operators do not count
    sizes   model → bytes
    room    bytes that loaded models may take
    """
    loaded: OrderedDict[str, int] = OrderedDict()
    hits = total = 0
    for model, by_request in trace:
        total += by_request
        if model in loaded:
            hits += by_request
            loaded.move_to_end(model)
            continue
        while loaded and sum(loaded.values()) + sizes[model] > room:
            loaded.popitem(last=False)
        loaded[model] = sizes[model]
    return hits / max(1, total)
