"""What loads cost requests: python plugins/memory_budget/benchmarks/interpreter_lock.py --mb 100

Takes one ONNX model through the steps of a load, and prints for each step its duration, the CPU time of its
thread, and the longest time for which another thread waited for the interpreter's lock. For so long, a server
answers nothing. The least of several repetitions counts: other processes make all of them longer.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from backend_onnx.session import open_session
from core_memory_budget.account import file_bytes
from core_memory_budget.measure import Meter
from onnx import TensorProto, helper, numpy_helper, save

_TICK_S = 0.0002


class Waits:
    """Measures on a thread of its own for how long that waits for the interpreter's lock."""

    def __init__(self) -> None:
        self._ended = False
        self.longest_s = 0.0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Waits:
        self._thread.start()
        time.sleep(0.02)
        self.longest_s = 0.0
        return self

    def __exit__(self, *error: object) -> None:
        time.sleep(0.002)  # for the wait at the end of the step
        self._ended = True
        self._thread.join()

    def _run(self) -> None:
        before = time.perf_counter()
        while not self._ended:
            time.sleep(_TICK_S)
            now = time.perf_counter()
            self.longest_s = max(self.longest_s, now - before - _TICK_S)
            before = now


def write_model(folder: Path, size: int) -> Path:
    """Write y = table[i] with a table of `size` bytes."""
    table = numpy_helper.from_array(np.ones(size // 4, np.float32), "table")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "i"], ["y"])],
        "table",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [table],
    )
    path = folder / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def options() -> Any:
    found = ort.SessionOptions()
    found.intra_op_num_threads = found.inter_op_num_threads = 1
    return found


def steps(path: Path, meter: Meter) -> dict[str, Callable[[], object]]:
    """Return the steps of a load and an unload, in their order."""
    session: list[Any] = []
    return {
        "sizes of the files": lambda: file_bytes(path.parent),
        "trim, and read the memory": lambda: (meter.trim(), meter.forget_peak(), meter.now()),
        "make the session": lambda: session.append(
            open_session(path, options(), [("CPUExecutionProvider", {})], "m")
        ),
        "read the memory and the mapped files": lambda: (
            meter.trim(),
            meter.now(),
            meter.mapped(path.parent),
        ),
        "one request": lambda: session[0].run(None, {"i": np.zeros(1, np.int64)}),
        "drop the session": session.clear,
        "trim after the unload": meter.trim,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--mb", type=int, default=100, help="of the model (%(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="(%(default)s)")
    given = parser.parse_args()
    least: dict[str, tuple[float, float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = write_model(Path(folder), given.mb << 20)
        meter = Meter()
        for _ in range(given.repeats):
            for name, step in steps(path, meter).items():
                with Waits() as waits:
                    begun_s, cpu_s = time.perf_counter(), time.thread_time()
                    step()
                    found = (time.perf_counter() - begun_s, time.thread_time() - cpu_s)
                times = (*found, waits.longest_s)
                least[name] = tuple(map(min, times, least.get(name, times)))  # type: ignore[assignment]
    print(f"{'step':38}{'ms':>8}{'CPU ms':>8}{'lock ms':>9}")
    for name, (wall_s, cpu_s, lock_s) in least.items():
        print(f"{name:38}{wall_s * 1e3:8.1f}{cpu_s * 1e3:8.1f}{lock_s * 1e3:9.1f}")


if __name__ == "__main__":
    main()
