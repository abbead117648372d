"""NVIDIA's Model Analyzer beside core tune, on a model of models.py and on this server.

    make bench-analyzer [ARGS="--model cnn|forest|python --mode quick|brute|optuna"]

Model Analyzer starts the program `tritonserver` of plugins/tritonserver, and searches instances,
max_batch_size and the number of clients. Its objective is the rate, its constraint the percentile 99 of the
latency: it has no other percentile, so core tune gets the same one here. The script prints how many
measurements it made, how long that took, its best settings, and the rate at which they keep this objective,
measured in turn with the choice of core tune.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from core_tune.command import run
from core_tune.configuration.json_form import settings_of
from core_tune.flags.plan import Plan, plan_of
from core_tune.server.own import free_ports
from models import CASES
from turns import in_turn, opened, say

from core import config as configuration

VERSION = "1.58"
PROFILE = """
model_repository: {repository}
output_model_repository_path: {output}
override_output_model_repository: true
checkpoint_directory: {checkpoints}
export_path: {results}
run_config_search_mode: {mode}
run_config_search_max_instance_count: {instances}
run_config_search_min_model_batch_size: {rows}
run_config_search_max_model_batch_size: {most_rows}
run_config_search_max_concurrency: {clients}
gpus: []
triton_launch_mode: local
triton_server_path: {program}
triton_http_endpoint: 127.0.0.1:{http}
triton_grpc_endpoint: 127.0.0.1:{grpc}
triton_metrics_url: http://127.0.0.1:{metrics}/metrics
perf_analyzer_path: {perf_analyzer}
perf_analyzer_timeout: 600
client_protocol: http
constraints:
  perf_latency_p99:
    max: {milliseconds}
profile_models:
  {model}:
    parameters: {{{parameters}}}
    perf_analyzer_flags: {{stability-percentage: {stability}}}
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tools", type=Path, required=True, help="environment of Model Analyzer")
    parser.add_argument("--model", default="cnn", choices=sorted(CASES))
    parser.add_argument("--mode", default="quick", choices=("quick", "brute", "optuna"))
    parser.add_argument("--instances", type=int, default=2, help="of its search, at most")
    parser.add_argument("--clients", type=int, default=64, help="of its search, at most")
    parser.add_argument(
        "--stability", type=float, default=10, help="percent by which its windows may differ"
    )
    parser.add_argument("--measurements", type=int, default=40, help="of core tune, at most")
    parser.add_argument("--seconds", type=float, default=0.4, help="of a round, in turn")
    parser.add_argument("--turns", type=int, default=24)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), options)
    return 0


def compare(folder: Path, options: argparse.Namespace) -> None:
    """Run both searches, and their results in turn; print a table."""
    path = folder / "models" / options.model
    CASES[options.model].write(path)
    plan = plan_of([str(path), *flags_of(options)])
    begin = time.monotonic()
    rows = profiled(options.tools.resolve(), folder, plan, options)
    seconds = time.monotonic() - begin
    row = best_of(rows, plan)
    written = config_of(folder / "output" / row["Model Config Path"])
    theirs = settings_of(configuration.to_json(written))
    say(f"Model Analyzer: {len(rows)} measurements in {seconds / 60:.1f} min: {theirs.shown}")
    outcome = run(plan)
    if outcome.best is None:
        raise SystemExit(f"core tune found no settings that keep {plan.objective.name}")
    ours = outcome.best
    with opened(plan, options.seconds) as meter:
        start = outcome.found.limits[ours]
        turns = in_turn([theirs, ours], start, meter, plan.objective.seconds, options.turns)
    ratio, error = turns.ratio(ours, theirs)
    count, minutes = len(outcome.found.observations), outcome.seconds / 60
    print("| search | result | measurements | time | rate, in turn |\n|---|---|---|---|---|")
    print(
        f"| Model Analyzer {VERSION}, {options.mode} | {theirs.shown} | {len(rows)} | "
        f"{seconds / 60:.1f} min | {turns.rate(theirs):,.0f}/s |"
    )
    print(
        f"| core tune | {ours.shown} | {count} | {minutes:.1f} min | {turns.rate(ours):,.0f}/s, "
        f"{ratio:.0%} ± {error:.1%} |"
    )


def flags_of(options: argparse.Namespace) -> list[str]:
    """Return the flags of core tune, with the percentile that Model Analyzer bounds."""
    flags = [each.replace("p95=", "p99=") for each in CASES[options.model].flags]
    return [*flags, "--measurements", str(options.measurements)]


def profiled(
    tools: Path, folder: Path, plan: Plan, options: argparse.Namespace
) -> list[dict[str, str]]:
    """Run Model Analyzer; return the rows of its report."""
    program = Path(sys.executable).with_name("tritonserver")
    perf_analyzer = tools / "bin" / "perf_analyzer"
    for each in (program, tools / "bin" / "model-analyzer", perf_analyzer):
        if not each.exists():
            raise SystemExit(f"'{each}' is not there; `make bench-analyzer` installs it")
    results = folder / "results"
    results.mkdir()
    http, grpc, metrics = free_ports(3)
    rows = max(plan.side.batch, 1)
    profile = PROFILE.format(
        repository=folder / "models",
        output=folder / "output",
        checkpoints=folder / "checkpoints",
        results=results,
        mode=options.mode,
        stability=options.stability,
        instances=options.instances,
        clients=options.clients,
        rows=rows,
        most_rows=config_of(folder / "models" / plan.side.model).max_batch_size,
        program=program,
        http=http,
        grpc=grpc,
        metrics=metrics,
        perf_analyzer=perf_analyzer,
        milliseconds=round(plan.objective.seconds * 1000),
        model=plan.side.model,
        parameters=f"batch_sizes: {rows}" if rows > 1 else "",
    )
    (folder / "profile.yaml").write_text(profile)
    command = [tools / "bin" / "model-analyzer", "profile", "-f", folder / "profile.yaml"]
    done = subprocess.run(
        list(map(str, command)), env=environment(tools, program), stdout=sys.stderr, check=False
    )
    reports = list(results.glob("**/metrics-model-inference.csv"))
    if done.returncode or not reports:
        raise SystemExit(f"Model Analyzer ended with status {done.returncode}, see its lines above")
    with reports[0].open() as file:
        return list(csv.DictReader(file))


def environment(tools: Path, program: Path) -> dict[str, str]:
    """Return the environment of Model Analyzer, in which perf_analyzer finds what it is linked to."""
    found = dict(os.environ)
    found["PATH"] = os.pathsep.join([str(tools / "bin"), str(program.parent), os.environ["PATH"]])
    found["LD_LIBRARY_PATH"] = str(next((tools / "lib").glob("**/nvidia/cuda_runtime/lib")))
    return found


def best_of(rows: Sequence[Mapping[str, str]], plan: Plan) -> Mapping[str, str]:
    """Return the row with the highest rate within the constraint; without one, the highest of all."""

    def number(row: Mapping[str, str], start: str) -> float:
        return float(next(value for name, value in row.items() if name.startswith(start)))

    if not rows:
        raise SystemExit("the report of Model Analyzer has no measurement")
    bound = plan.objective.seconds * 1000
    able = [each for each in rows if number(each, "p99 Latency") <= bound] or rows
    return max(able, key=lambda each: number(each, "Throughput"))


def config_of(model: Path) -> configuration.ModelConfig:
    """Return the configuration in the folder of a model."""
    path = model / "config.pbtxt"
    return configuration.parse_text(path.read_text(), str(path))


if __name__ == "__main__":
    raise SystemExit(main())
