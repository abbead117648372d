"""Measure what the server does on a GPU: python -m benchmarks.gpu [SECTION …] [--out FOLDER]

Each section runs in a process of its own, prints its rows, and writes them to SECTION.json in the folder of
--out, with the error if it failed. The page index.html there shows all. No network is needed.

    models       PyTorch in four formats, batches 1 to 64, 1 to 8 instances, beside loops with CUDA graphs
    overlap      the part of the time of copies in which a kernel ran
    chains       copies of an ensemble and a Python model of three steps
    shared       CUDA shared memory of another process, with tritonclient
    metrics      metrics of the GPU beside nvidia-smi
    memory       a model that runs out of memory beside others
    reloads      memory during reloads
    generation   OpenAI's routes over transformers, beside transformers alone
    onnx         ONNX Runtime with CUDA, if it is there

Exit status: 0, 1 if a section failed or there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu import page

Rows = Iterator[dict[str, Any]]
PATIENCE_S = 600.0


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

    def models() -> Rows:
        from benchmarks.gpu import models

        return models.measure(chosen.packages or folder, chosen.seconds, chosen.rounds)

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
        "models": models,
        "overlap": overlap,
        "chains": chains,
        "shared": shared,
        "metrics": resident("metrics"),
        "memory": resident("out_of_memory"),
        "reloads": reloads,
        "generation": generation,
        "onnx": onnx,
    }


def run_section(name: str, chosen: argparse.Namespace) -> None:
    """Measure one section in this process: print its rows, and write them with the machine to a file."""
    import torch

    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {"section": name, "gpu": torch.cuda.get_device_name(0)}
    found |= {"torch": torch.__version__, "rows": rows}
    begin = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix=f"gpu-{name}-") as folder:
            for row in sections(chosen, Path(folder))[name]():
                rows.append(row)
                print(name, json.dumps(row), flush=True)
    except BaseException as error:
        found["error"] = f"{type(error).__name__}: {error}"[:2000]
        raise
    finally:
        found["seconds"] = round(time.monotonic() - begin, 1)
        (chosen.out / f"{name}.json").write_text(json.dumps(found, indent=1))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("section", nargs="*", help="default: all")
    parser.add_argument("--out", type=Path, default=Path("gpu-results"), help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--reloads", type=float, default=600.0, help="seconds (%(default)s)")
    parser.add_argument("--packages", type=Path, help="folder that keeps the files of networks")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
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
    failed = 0
    for name in chosen.section or known:
        options = [each for each in arguments if each not in known]
        command = [sys.executable, "-m", "benchmarks.gpu", "--inside", name, *options]
        try:
            failed += subprocess.run(command, timeout=PATIENCE_S).returncode != 0
        except subprocess.TimeoutExpired:
            print(f"{name}: ended after {PATIENCE_S:.0f} s", file=sys.stderr)
            failed += 1
    page.write(chosen.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
