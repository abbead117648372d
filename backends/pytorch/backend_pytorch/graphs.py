"""Run a program as CUDA graphs: one launch instead of one per kernel.

TorchInstance.outputs_of ─► [CapturedRuns] ─► Program.  The runs of a shape are: RUNS_BEFORE of the program
itself, one that is captured, then replays.

A graph repeats the kernels of its capture with their addresses. So each graph has input tensors of its own,
to which a batch is copied on the GPU. Its results are copied too: the next replay overwrites them.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch

from backend_pytorch.framework import first_line

if TYPE_CHECKING:
    from backend_pytorch.program import Program

logger = logging.getLogger("core")

RUNS_BEFORE = 3  # in these, torch compiles TorchScript, and libraries choose kernels for the shape
MOST_GRAPHS = 64  # of an instance; further shapes run without a graph

# torch waits for the device before a capture, which fails while another thread captures.
_capturing = threading.Lock()

Results = list[Any] | dict[str, Any]


class CapturedRuns:
    """Run a program of one GPU, by a graph for each combination of input shapes.

    Call `run` on one thread, with the stream of computation current, always the same one. What the program
    does outside the GPU, such as code in Python, happens in its own runs and in the capture only. A program
    that cannot be captured, such as one that reads a tensor on the host, runs without graphs, with the reason
    in the log.

    program   gives tensors; one that gives text runs without graphs
    model     its name, for the log
    """

    def __init__(self, program: Program, model: str):
        self._program = program
        self._model = model
        self._runs: Counter[tuple[Any, ...]] = Counter()
        self._graphs: dict[tuple[Any, ...], _Graph] = {}
        self._pool: Any = None  # memory of all graphs: no two of them run at the same time
        self._captures = True

    def run(self, arguments: list[Any] | dict[str, Any]) -> Results:
        """Run the program once, as `Program.run`. The results are not overwritten by later runs."""
        given = list(arguments.values()) if isinstance(arguments, dict) else arguments
        shapes = _shapes(arguments, given)
        graph = self._graphs.get(shapes) if shapes is not None else None
        if graph is None and shapes is not None and self._is_due(shapes):
            graph = self._captured(shapes, arguments, given)
        return self._program.run(arguments) if graph is None else graph.replay(given)

    def _is_due(self, shapes: tuple[Any, ...]) -> bool:
        """Return whether this run of a shape is the one to capture, and count it."""
        if not self._captures or len(self._graphs) >= MOST_GRAPHS:
            return False
        self._runs[shapes] += 1
        return self._runs[shapes] > RUNS_BEFORE

    def _captured(
        self, shapes: tuple[Any, ...], arguments: list[Any] | dict[str, Any], given: list[Any]
    ) -> _Graph | None:
        """Return a new graph of the shape; None if the program cannot be captured."""
        own = [torch.empty_like(each, memory_format=torch.contiguous_format) for each in given]
        for mine, each in zip(own, given, strict=True):
            mine.copy_(each)
        if isinstance(arguments, dict):
            taken: Any = dict(zip(arguments, own, strict=True))
        else:
            taken = own
        graph = torch.cuda.CUDAGraph()
        try:
            with _capturing:
                # Other threads may allocate memory meanwhile.
                mode = {"capture_error_mode": "thread_local"}
                stream = torch.cuda.current_stream()
                with torch.cuda.graph(graph, pool=self._pool, stream=stream, **mode):
                    results = self._program.run(taken)
        except Exception as error:
            self._stop(first_line(error).splitlines()[0])
            return None
        if not all(isinstance(each, torch.Tensor) for each in _values(results)):
            self._stop("it gives text")
            return None
        self._pool = graph.pool()
        found = self._graphs[shapes] = _Graph(graph, own, results)
        return found

    def _stop(self, reason: str) -> None:
        self._captures = False
        logger.warning("model '%s': runs without CUDA graphs: %s", self._model, reason)


class _Graph:
    """A captured run, its inputs and its results."""

    def __init__(self, graph: Any, inputs: list[Any], results: Results):
        self._graph = graph
        self._inputs = inputs
        self._results = results

    def replay(self, given: list[Any]) -> Results:
        """Run the graph with these inputs, and return copies of its results."""
        if given:
            torch._foreach_copy_(self._inputs, given, non_blocking=True)
        self._graph.replay()
        if isinstance(self._results, dict):
            return {name: each.clone() for name, each in self._results.items()}
        return [each.clone() for each in self._results]


def _shapes(arguments: Any, given: list[Any]) -> tuple[Any, ...] | None:
    """Return the names, datatypes and shapes of the arguments; None if one of them is no tensor on a GPU."""
    found: list[Any] = list(arguments) if isinstance(arguments, dict) else []
    for each in given:
        if not isinstance(each, torch.Tensor) or each.device.type == "cpu":
            return None
        found.append((each.dtype, each.shape))
    return tuple(found)


def _values(results: Results) -> Any:
    return results.values() if isinstance(results, dict) else results
