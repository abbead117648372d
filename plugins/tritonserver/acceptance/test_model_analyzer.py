"""Model Analyzer 1.58: it starts our program itself (local), or measures one that runs (remote)."""

import csv
import os

import pytest

PROFILE = """
model_repository: {repository}
output_model_repository_path: {output}
override_output_model_repository: true
export_path: {results}
run_config_search_disable: true
gpus: []
triton_launch_mode: {mode}
triton_server_path: {program}
perf_analyzer_path: {perf_analyzer}
triton_http_endpoint: 127.0.0.1:{http}
triton_grpc_endpoint: 127.0.0.1:{grpc}
triton_metrics_url: http://127.0.0.1:{metrics}/metrics
client_protocol: http
perf_analyzer_timeout: 120
profile_models:
  copy:
    parameters:
      concurrency: [2]
      batch_sizes: [1]
    perf_analyzer_flags:
      measurement-mode: count_windows
      measurement-request-count: 50
      stability-percentage: 90
"""


def profile(tools, repository, tmp_path, mode, ports):
    """Profile the model `copy`; return the rows of the report."""
    analyzer = tools.find("tools/bin/model-analyzer")
    perf_analyzer = tools.find("tools/bin/perf_analyzer")
    # What perf_analyzer is linked to.
    cuda = next(tools.find("tools/lib").glob("**/nvidia/cuda_runtime/lib"))
    results = tmp_path / "results"
    http, grpc, metrics = ports
    text = PROFILE.format(
        repository=repository,
        output=tmp_path / "output",
        results=results,
        mode=mode,
        program=tools.program,
        perf_analyzer=perf_analyzer,
        http=http,
        grpc=grpc,
        metrics=metrics,
    )
    results.mkdir()
    (tmp_path / "profile.yaml").write_text(text)
    path = f"{analyzer.parent}{os.pathsep}{tools.program.parent}{os.pathsep}{os.environ['PATH']}"

    tools.run(
        analyzer,
        "profile",
        "--checkpoint-directory",
        tmp_path / "checkpoints",
        "-f",
        tmp_path / "profile.yaml",
        PATH=path,
        LD_LIBRARY_PATH=str(cuda),
    )

    (report,) = results.glob("**/metrics-model-inference.csv")
    return list(csv.DictReader(report.open()))


def check(rows):
    assert rows, "the report has no measurement"
    for row in rows:
        assert row["Model"] == "copy"
        throughput = next(value for name, value in row.items() if name.startswith("Throughput"))
        assert float(throughput) > 0


@pytest.mark.timeout(600)
def test_a_model_is_profiled_on_a_program_that_it_starts(tools, repository, tmp_path):
    check(profile(tools, repository, tmp_path, "local", tools.free_ports(3)))


@pytest.mark.timeout(600)
def test_a_model_is_profiled_on_a_server_that_runs(tools, repository, tmp_path):
    tools.find("tools/bin/model-analyzer")
    output = tmp_path / "output"  # for the variants of the model that Model Analyzer writes
    output.mkdir()
    with tools.serve(
        f"--model-repository={repository}",
        f"--model-repository={output}",
        "--model-control-mode=explicit",
    ) as ports:
        check(profile(tools, repository, tmp_path, "remote", ports))
