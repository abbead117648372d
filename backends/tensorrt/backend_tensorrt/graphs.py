"""Choose the CUDA graph of a batch.

config.pbtxt ─► [specs_of] ─► captured for each slot;   shapes of a batch ─► [chosen] ─► launched.
No calls of CUDA or TensorRT. A graph has the fixed shapes of its capture. With a lower bound, it also runs
smaller batches, padded to its shapes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend_tensorrt.facts import Facts
from core.config import ModelConfig
from core.errors import CoreError, invalid

logger = logging.getLogger("core")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class GraphSpec:
    """The shapes of all inputs of a graph, with the batch dimension.

    most    name and shape of each input at the capture, in the engine's order
    least   name and smallest shape that the graph runs; equal to `most` without a lower bound
    """

    most: tuple[tuple[str, Shape], ...]
    least: tuple[tuple[str, Shape], ...]

    @property
    def shapes(self) -> dict[str, Shape]:
        return dict(self.most)

    @property
    def size(self) -> int:
        """Number of elements of all inputs."""
        return sum(math.prod(shape) for _, shape in self.most)

    def runs(self, shapes: Mapping[str, Shape]) -> bool:
        """Return whether the graph can run these input shapes: each lies between `least` and `most`."""
        return all(
            len(shapes[name]) == len(most)
            and all(a <= b <= c for a, b, c in zip(low, shapes[name], most, strict=True))
            for (name, low), (_, most) in zip(self.least, self.most, strict=True)
        )


def specs_of(
    config: ModelConfig, facts: Facts, profiles: Sequence[int] = (0,)
) -> tuple[GraphSpec, ...]:
    """Return the graphs to capture; none unless optimization.cuda.graphs is set.

    profiles   numbers of the instance's optimization profiles
    Each graph_spec gives one graph. Without graph_spec, each profile and each size of `_sizes` give one, in
    which dims of any size have the profile's optimum. Logs a warning and returns none for an engine with
    shape tensors, because their values are not part of a graph's shapes. The same holds for a model with
    batch_input or ragged inputs, unless it has a graph_spec.
    Raises CoreError(INVALID) for a graph_spec that does not fit the configuration.
    """
    cuda = config.optimization.cuda
    if not cuda.graphs:
        return ()
    if any(port.on_host for port in facts.ports):
        logger.warning("model '%s': no CUDA graphs, it has shape tensors", config.name)
        return ()
    if cuda.graph_spec:
        return tuple(_spec(config, facts, each) for each in cuda.graph_spec)
    if config.batch_input or any(io.allow_ragged_batch for io in config.input):
        logger.warning(
            "model '%s': no CUDA graphs, since inputs of several requests are one row of its engine; say "
            "with optimization.cuda.graph_spec for which shapes",
            config.name,
        )
        return ()
    known = {io.name: _dims(io) for io in config.input}
    found: dict[GraphSpec, None] = {}
    for number in profiles:
        for rows in _sizes(config):
            dims = {
                name: _closed(known.get(name), port.shapes[number].best[bool(rows) :])
                for name, port in facts.inputs.items()
            }
            found[_of(facts, dims, rows, dims, rows)] = None
    return tuple(found)


def _closed(dims: Shape | None, best: Shape) -> Shape:
    """Return `dims` with the optimum for each -1; all of `best` if `dims` is None or of another rank."""
    if dims is None or len(dims) != len(best):  # a state, or a scalar, which clients see as [1]
        return best
    return tuple(there if size < 0 else size for size, there in zip(dims, best, strict=True))


def _sizes(config: ModelConfig) -> list[int]:
    """Return the batch sizes to capture without a graph_spec, as Triton does; [0] without batching."""
    most = config.max_batch_size
    if not most:
        return [0]
    if config.HasField("dynamic_batching"):
        preferred = list(config.dynamic_batching.preferred_batch_size)
    elif config.sequence_batching.HasField("oldest"):
        preferred = list(config.sequence_batching.oldest.preferred_batch_size)
    else:
        preferred = [2, 3, 4, 6, 8, 12, 16]
    return sorted({1, most, *(size for size in preferred if size <= most)})


def _dims(io: Any) -> Shape:
    return tuple(io.reshape.shape) if io.HasField("reshape") else tuple(io.dims)


def _spec(config: ModelConfig, facts: Facts, asked: Any) -> GraphSpec:
    rows = _rows(config, asked.batch_size)
    known = {io.name: _dims(io) for io in config.input}
    dims = _asked_dims(config, facts, asked.input, known)
    if not asked.HasField("graph_lower_bound"):
        return _of(facts, dims, rows, dims, rows)
    bound = asked.graph_lower_bound
    least = _asked_dims(config, facts, bound.input, dims)
    spec = _of(facts, dims, rows, least, _rows(config, bound.batch_size))
    if not spec.runs(dict(spec.least)):
        raise _wrong(config, "graph_lower_bound must not be above the graph's own shapes")
    return spec


def _rows(config: ModelConfig, rows: int) -> int:
    low = 1 if config.max_batch_size else 0
    if not low <= rows <= config.max_batch_size:
        allowed = f"between 1 and {config.max_batch_size}" if low else "0, like max_batch_size"
        raise _wrong(config, f"batch_size is {rows}, it must be {allowed}")
    return rows


def _asked_dims(
    config: ModelConfig, facts: Facts, asked: Mapping[str, Any], otherwise: Mapping[str, Shape]
) -> dict[str, Shape]:
    unknown = set(asked) - set(facts.inputs)
    if unknown:
        raise _wrong(config, f"the engine has no input '{min(unknown)}'")
    found = {}
    for name in facts.inputs:
        dims = tuple(asked[name].dim) if name in asked else otherwise.get(name, (-1,))
        if any(size < 0 for size in dims):
            raise _wrong(config, f"it must give every dimension of input '{name}'")
        found[name] = dims
    return found


def _wrong(config: ModelConfig, text: str) -> CoreError:
    return invalid(f"model '{config.name}': optimization.cuda.graph_spec: {text}")


def _of(
    facts: Facts, most: Mapping[str, Shape], rows: int, least: Mapping[str, Shape], low: int
) -> GraphSpec:
    def whole(dims: Mapping[str, Shape], count: int) -> tuple[tuple[str, Shape], ...]:
        return tuple((n, (count, *dims[n]) if count else tuple(dims[n])) for n in facts.inputs)

    return GraphSpec(whole(most, rows), whole(least, low))


def chosen(specs: Sequence[GraphSpec], shapes: Mapping[str, Shape]) -> GraphSpec | None:
    """Return the smallest graph that can run a batch of these shapes; None if there is none."""
    running = [each for each in specs if each.runs(shapes)]
    return min(running, key=lambda each: each.size, default=None)
