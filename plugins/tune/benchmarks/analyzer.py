"""NVIDIA's Model Analyzer beside core tune, on a model of models.py and on this server.

    make build/dropin/.made
    PYTHONPATH=. python plugins/tune/benchmarks/analyzer.py --tools build/dropin/tools [--model cnn]

Model Analyzer starts the program `tritonserver` of plugins/tritonserver, and searches instances, batches and
clients. Its objective is the rate, its constraint the percentile 99 of the latency: it has no other one. The
script prints how many measurements it made, how long that took, its best settings, and the rate at which
they keep core tune's objective, measured in turn with the choice of core tune.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from core_tune.command import run
from core_tune.flags.plan import Plan, plan_of
from core_tune.settings import Settings
from exhaustive import in_turn, opened, say
from models import CASES

PROFILE = """
model_repository: {repository}
output_model_repository_path: {output}
override_output_model_repository: true
export_path: {results}
run_config_search_mode: {mode}
run_config_search_max_instance_count: 2
run_config_search_max_model_batch_size: 16
run_config_search_max_concurrency: 64
gpus: []
triton_launch_mode: local
triton_server_path: {program}
perf_analyzer_path: {perf_analyzer}
client_protocol: http
perf_analyzer_timeout: 120
constraints:
  perf_latency_p99:
    max: {milliseconds}
profile_models: [{model}]
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--model", default="cnn", choices=sorted(CASES))
    parser.add_argument("--mode", default="quick", choices=("quick", "brute"))
    parser.add_argument("--turns", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "models" / options.model
        CASES[options.model].write(path)
        plan = plan_of([str(path), *CASES[options.model].flags])
        begin = time.monotonic()
        rows = profiled(options.tools.resolve(), Path(folder), plan, options.mode)
        seconds = time.monotonic() - begin
        best = chosen(rows, plan)
        say(f"Model Analyzer: {len(rows)} measurements in {seconds / 60:.1f} min: {best.shown}")
        outcome = run(plan)
        assert outcome.best is not None
        with opened(plan, 0.4) as meter:
            wanted = {"analyzer": best, "tune": outcome.best}
            rates = in_turn(
                wanted, outcome.found.limits, meter, plan.objective.seconds, options.turns
            )
    print("| search | result | measurements | time | rate, in turn |\n|---|---|---|---|---|")
    print(
        f"| Model Analyzer 1.58, {options.mode} | {best.shown} | {len(rows)} | {seconds / 60:.1f} min | "
        f"{rates['analyzer']:,.0f}/s |"
    )
    count, minutes = len(outcome.found.observations), outcome.seconds / 60
    print(
        f"| core tune | {outcome.best.shown} | {count} | {minutes:.1f} min | {rates['tune']:,.0f}/s |"
    )
    return 0


def profiled(tools: Path, folder: Path, plan: Plan, mode: str) -> list[dict[str, str]]:
    """Run Model Analyzer; return the rows of its report."""
    program = Path(sys.executable).with_name("tritonserver")
    cuda = next((tools / "lib").glob("**/nvidia/cuda_runtime/lib"))
    results = folder / "results"
    results.mkdir()
    text = PROFILE.format(
        repository=folder / "models",
        output=folder / "output",
        results=results,
        mode=mode,
        program=program,
        perf_analyzer=tools / "bin" / "perf_analyzer",
        milliseconds=round(plan.objective.seconds * 1000),
        model=plan.side.model,
    )
    (folder / "profile.yaml").write_text(text)
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join(
        [str(tools / "bin"), str(program.parent), os.environ["PATH"]]
    )
    environment["LD_LIBRARY_PATH"] = str(cuda)
    command = [tools / "bin" / "model-analyzer", "profile", "-f", folder / "profile.yaml"]
    command += ["--checkpoint-directory", folder / "checkpoints"]
    subprocess.run(list(map(str, command)), env=environment, check=True, stdout=sys.stderr)
    (report,) = results.glob("**/metrics-model-inference.csv")
    with report.open() as file:
        return list(csv.DictReader(file))


def chosen(rows: list[dict[str, str]], plan: Plan) -> Settings:
    """Return the settings of the row with the highest rate within the constraint."""

    def number(row: dict[str, str], start: str) -> float:
        return float(next(value for name, value in row.items() if name.startswith(start)))

    bound = plan.objective.seconds * 1000
    able = [row for row in rows if number(row, "p99 Latency") <= bound] or rows
    best = max(able, key=lambda row: number(row, "Throughput"))
    instances = best["Instance Group"].partition(":")[0]
    rows_at_most = int(number(best, "Max Batch Size"))
    return Settings(instances=int(instances), batch=rows_at_most)


if __name__ == "__main__":
    raise SystemExit(main())
