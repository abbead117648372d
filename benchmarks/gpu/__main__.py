"""Measure what the server does on a GPU: python -m benchmarks.gpu [SECTION …] [--out FOLDER]

Each section runs in a process of its own. It prints each row and writes it to results.json in the folder of
--out at once, with the error if it fails. The page index.html there shows all rows beside their goals.
Sections run in this order, the most important first, until --limit. No network is needed.

    models       PyTorch in three formats, batches 1 to 64, beside loops with CUDA graphs
    chains       copies of an ensemble and a Python model of three steps
    shared       CUDA shared memory of another process, with tritonclient
    generation   OpenAI's routes over transformers, beside transformers alone
    instances    2 and 8 instances, and instances that poll
    overlap      the part of the time of copies in which a kernel ran
    memory       a model that runs out of memory beside others
    metrics      metrics of the GPU beside nvidia-smi
    reloads      memory during reloads
    onnx         ONNX Runtime with CUDA, if it is there
    aotinductor  the table of `models` for packages, which take minutes to compile

Exit status: 0, 1 if a section or row failed or there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu import page, results
from benchmarks.gpu.group import run_group

Rows = Iterator[dict[str, Any]]
# The longest time of each section, so that one that hangs leaves time for the others.
LIMITS_S = {
    "models": 240.0,
    "chains": 60.0,
    "shared": 100.0,
    "generation": 120.0,
    "instances": 90.0,
    "overlap": 60.0,
    "memory": 60.0,
    "metrics": 40.0,
    "reloads": 60.0,  # and the seconds of --reloads
    "onnx": 60.0,
    "aotinductor": 400.0,
}


def reason() -> str:
    """Return the reason why this machine cannot run the benchmark; "" if it can."""
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    if torch.cuda.is_available():
        return ""
    return f"torch {torch.__version__} finds no GPU that it can use"


def sections(chosen: argparse.Namespace, folder: Path) -> dict[str, Callable[[], Rows]]:
    """Return name → function that measures. Modules of a section are imported by its process only."""

    def table(name: str) -> Callable[[], Rows]:
        def run() -> Rows:
            from benchmarks.gpu import models

            kept = chosen.packages or folder
            return models.measure(kept, chosen.seconds, chosen.rounds, models.TABLES[name])

        return run

    def overlap() -> Rows:
        from benchmarks.gpu import overlapping

        return overlapping.measure(folder)

    def chains() -> Rows:
        from benchmarks.gpu import chains

        return chains.measure(folder)

    def shared() -> Rows:
        from benchmarks.gpu import shared

        return shared.measure(folder)

    def onnx() -> Rows:
        from benchmarks.gpu import onnx

        return onnx.measure(folder, chosen.seconds, chosen.rounds)

    def generation() -> Rows:
        from benchmarks.gpu import generation

        return generation.measure(folder)

    def resident(name: str) -> Callable[[], Rows]:
        def run() -> Rows:
            from benchmarks.gpu import residents

            return getattr(residents, name)(folder)  # type: ignore[no-any-return]

        return run

    def reloads() -> Rows:
        from benchmarks.gpu import residents

        return residents.reloads(folder, chosen.reloads)

    return {
        "models": table("models"),
        "chains": chains,
        "shared": shared,
        "generation": generation,
        "instances": table("instances"),
        "overlap": overlap,
        "memory": resident("out_of_memory"),
        "metrics": resident("metrics"),
        "reloads": reloads,
        "onnx": onnx,
        "aotinductor": table("aotinductor"),
    }


def machine() -> dict[str, str]:
    """Return what the results are of."""
    import torch

    found = {"GPU": torch.cuda.get_device_name(0), "torch": torch.__version__}
    return found | {"Python": sys.version.split()[0]}


def run_section(name: str, chosen: argparse.Namespace) -> None:
    """Measure one section in this process: print its rows, and write each with the machine."""
    begin = time.monotonic()
    found = results.Section(chosen.out, name, machine())

    def seconds() -> float:
        return time.monotonic() - begin

    try:
        with tempfile.TemporaryDirectory(prefix=f"gpu-{name}-") as folder:
            for row in map(results.rounded, sections(chosen, Path(folder))[name]()):
                found.add(row, seconds())
                print(name, json.dumps(row), flush=True)
    except results.LeftOut as why:
        found.note(seconds(), left_out=str(why))
        print(f"{name}: left out: {why}", flush=True)
    except BaseException as error:
        found.note(seconds(), error=f"{type(error).__name__}: {error}"[:2000])
        raise


def run_sections(names: Sequence[str], chosen: argparse.Namespace, options: Sequence[str]) -> int:
    """Run each section in a process while there is time; return how many failed."""
    end = time.monotonic() + chosen.limit
    failed = 0
    for name in names:
        longest = LIMITS_S[name] + (chosen.reloads if name == "reloads" else 0)
        seconds = min(longest, end - time.monotonic())
        status: int | None = None
        if seconds > 0:
            command = [sys.executable, "-m", "benchmarks.gpu", "--inside", name, *options]
            status = run_group(command, seconds)
        if status is None:
            why = f"ended after {seconds:.0f} s" if seconds > 0 else "no time was left"
            results.note(chosen.out, name, error=why)
            print(f"{name}: {why}", file=sys.stderr, flush=True)
        elif status:
            # A process that crashed wrote no error itself.
            known = results.read(chosen.out)["sections"].get(name, {}).get("error")
            results.note(chosen.out, name, error=known or f"its process ended with {status}")
        failed += status != 0
    return failed


def parser_of() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("section", nargs="*", help="default: all")
    parser.add_argument("--out", type=Path, default=Path("gpu-results"), help="(%(default)s)")
    parser.add_argument("--limit", type=float, default=570.0, help="seconds of all (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--reloads", type=float, default=30.0, help="seconds (%(default)s)")
    parser.add_argument("--packages", type=Path, help="folder that keeps the files of networks")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str]) -> int:
    parser = parser_of()
    chosen = parser.parse_args(arguments)
    known = list(sections(chosen, Path()))
    for name in chosen.section:
        if name not in known:
            parser.error(f"there is no section '{name}'; choose from {', '.join(known)}")
    if missing := reason():
        print(f"nothing is measured: {missing}; this benchmark needs a GPU", file=sys.stderr)
        return 1
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.inside:
        run_section(chosen.section[0], chosen)
        return 0
    # Ends the processes of the section too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = [each for each in arguments if each not in known]
    failed = run_sections(chosen.section or known, chosen, options)
    found = results.read(chosen.out)
    print("\n".join(page.lines(found)), flush=True)
    return 1 if failed or page.errors(found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
