"""CPU time of one request to a Python model, in the server and in the model's process.

    python benchmarks/python_models.py
    python benchmarks/python_models.py --other before=/path/to/another/venv/bin/python --rounds 9
    python benchmarks/python_models.py --other "before=env PYTHONPATH=/another/backends/python python"

There is no frontend: requests go through `Models.infer` in this process. The measurement includes admission,
queue, the message to the child, its `execute`, the message back and delivery. Two inputs of 16 elements, two
outputs. Each response sends the next request, so the number `in flight` is constant. CPU µs is user and
system time per request; server and child are pinned to one core. Sides are measured in turn, round by round,
each in a separate process; the minimum of the rounds is shown, since other work on the machine can only add
time.
"""

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Found = tuple[str, int, float, float]  # kind, in flight, µs of the server, µs of the children

MODEL = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            a = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            b = pb_utils.get_input_tensor_by_name(request, "INPUT1").as_numpy()
            responses.append(
                pb_utils.InferenceResponse(
                    output_tensors=[
                        pb_utils.Tensor("OUTPUT0", a + b),
                        pb_utils.Tensor("OUTPUT1", a - b),
                    ]
                )
            )
        return responses
"""

CONFIG = """
backend: "python"
max_batch_size: 64
input [
  { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] },
  { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] }
]
output [
  { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] },
  { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 16 ] }
]
"""

INLINE = (
    'dynamic_batching { } parameters { key: "EXECUTION_MODE" value { string_value: "inline" } }'
)
KINDS = {"plain": "", "batched": "dynamic_batching { }", "inline": INLINE}


def write_models(folder: str) -> None:
    for kind, more in KINDS.items():
        version = Path(folder) / f"add_sub_{kind}" / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(MODEL)
        (version.parent / "config.pbtxt").write_text(CONFIG + more)


def children_ns() -> int:
    """Return the CPU time of all descendants of this process in ns."""
    total = 0
    for task in Path("/proc/self/task").iterdir():
        total += sum(_process_ns(pid) for pid in (task / "children").read_text().split())
    return total


def _process_ns(pid: str) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
        total += sum(_process_ns(child) for child in (task / "children").read_text().split())
    return total


async def run(server: Any, model: str, in_flight: int, count: int) -> None:
    """Send `count` requests, `in_flight` at a time."""
    import numpy as np

    from core.dtypes import FP32
    from core.request import InferenceRequest
    from core.tensor import Tensor

    raw = np.arange(16, dtype=np.float32).tobytes()
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = count
    open_now = 0

    def answered(item: Any, final: bool) -> None:
        nonlocal open_now
        if isinstance(item, Exception):
            done.set_exception(item)
            return
        for tensor in item.outputs:
            len(tensor.raw)  # a frontend takes the bytes
        open_now -= 1
        if left:
            send()
        elif not open_now:
            done.set_result(None)

    def send() -> None:
        nonlocal left, open_now
        left -= 1
        open_now += 1
        inputs = {
            "INPUT0": Tensor("INPUT0", FP32, (1, 16), raw),
            "INPUT1": Tensor("INPUT1", FP32, (1, 16), raw),
        }
        server.models.infer(InferenceRequest(model, inputs)).listen(answered)

    for _ in range(in_flight):
        send()
    await done


async def measure(in_flights: list[int], count: int) -> list[Found]:
    """Measure each kind of model with each number of requests in flight."""
    from core.options import Options
    from core.server import InferenceServer

    found = []
    with tempfile.TemporaryDirectory() as folder:
        write_models(folder)
        server = InferenceServer(Options.defaults(model_repository=[folder]))
        await server.start()
        for kind in KINDS:
            for in_flight in in_flights:
                await run(server, f"add_sub_{kind}", in_flight, count // 4)  # warm
                ours, theirs = time.process_time_ns(), children_ns()
                await run(server, f"add_sub_{kind}", in_flight, count)
                ours, theirs = time.process_time_ns() - ours, children_ns() - theirs
                found.append((kind, in_flight, ours / count / 1e3, theirs / count / 1e3))
        await server.stop(10)
    return found


def one_side(options: argparse.Namespace) -> None:
    import uvloop

    os.sched_setaffinity(0, {options.core})
    print(json.dumps(uvloop.run(measure(options.in_flight, options.count))))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--in-flight", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--count", type=int, default=4000, help="requests of one case and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument(
        "--other",
        action="append",
        default=[],
        help="NAME=COMMAND of another Python to compare with",
    )
    parser.add_argument("--one-side", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one_side:
        one_side(options)
        return
    sides = {"here": sys.executable, **dict(each.split("=", 1) for each in options.other)}
    least: dict[tuple[str, int], dict[str, list[float]]] = {}
    for _ in range(options.rounds):
        for name, python in sides.items():
            command = [*shlex.split(python), __file__, "--one-side", f"--count={options.count}"]
            command += [f"--core={options.core}", "--in-flight", *map(str, options.in_flight)]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            for kind, in_flight, ours, theirs in json.loads(output.splitlines()[-1]):
                best = least.setdefault((kind, in_flight), {}).setdefault(name, [9e9, 9e9, 9e9])
                for i, value in enumerate((ours, theirs, ours + theirs)):
                    best[i] = min(best[i], value)
    print(f"{'model':8} {'in flight':>9} {'side':10} {'server':>7} {'child':>7} {'sum':>7}  ratio")
    for (kind, in_flight), sides_found in least.items():
        for name, (ours, theirs, both) in sides_found.items():
            ratio = both / sides_found["here"][2]
            print(
                f"{kind:8} {in_flight:9} {name:10} {ours:7.1f} {theirs:7.1f} {both:7.1f} {ratio:6.2f}"
            )


if __name__ == "__main__":
    main()
