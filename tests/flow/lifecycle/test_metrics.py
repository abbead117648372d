"""The metrics of models, from their folders to the families."""

import asyncio
import logging

import pytest

from core.errors import CoreError
from core.telemetry.metrics.detailed import DetailedStatistics

CONFIG = """
backend: "scaler"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
model_metrics { metric_control [
  { metric_identifier { family: "nv_inference_request_duration_histogram_us" }
    histogram_options { buckets: [ 7, 1e9 ] } },
  { metric_identifier { family: "own" } histogram_options { buckets: [ 1 ] } }
] }
"""


def told(server, name):
    (family,) = (each for each in server.control.health.metrics_here() if each.name == name)
    return {(*each.labels.values(), each.suffix): each.value for each in family.samples}


async def test_a_model_chooses_the_buckets_of_its_histograms(serve, models, ask, caplog):
    models.write("m", "2", config=CONFIG)
    with caplog.at_level(logging.WARNING, "core"):
        server = await serve(load_model=["m"], metrics_config={"histogram_latencies": "true"})

    await ask(server)

    assert told(server, "nv_inference_request_duration_histogram_us").keys() == {
        ("m", "1", "7", "_bucket"),
        ("m", "1", "1000000000", "_bucket"),
        ("m", "1", "+Inf", "_bucket"),
        ("m", "1", "_sum"),
        ("m", "1", "_count"),
    }
    assert "model 'm': model_metrics has no effect on 'own', expected one of" in caplog.text


@pytest.mark.parametrize(
    "options", [{}, {"metrics_config": {"summary_latencies": "true"}, "allow_metrics": False}]
)
async def test_unreadable_memory_is_not_counted(serve, models, options):
    models.write("m", "2")
    server = await serve(load_model=["m"], **options)

    (version,) = server.models.versions()
    assert not isinstance(version.statistics, DetailedStatistics)


async def test_loads_and_unloads_are_counted_by_their_results(serve, models):
    models.write("m", "2")
    server = await serve(load_model=["m"])
    models.write("m", "no number")
    with pytest.raises(CoreError, match="ValueError"):
        await server.models.load("m")
    assert told(server, "core_model_ready") == {("m", "1", ""): 1}
    models.write("m", "3")
    await server.models.load("m")
    await server.models.unload("m")
    while any(each.state == "UNLOADING" for each in server.models.versions()):
        await asyncio.sleep(0.001)

    assert told(server, "core_model_loads") == {
        ("m", "success", ""): 2,
        ("m", "failure", ""): 1,
    }
    assert told(server, "core_model_ready") == {}
    assert told(server, "core_model_unloads")["m", "failure", ""] == 0


async def test_a_model_that_could_not_be_loaded_is_not_ready(serve, models):
    models.write("m", "no number")
    server = await serve(model_control_mode="none", exit_on_error=False)

    assert told(server, "core_model_ready") == {("m", "1", ""): 0}
    assert told(server, "core_model_loads")["m", "failure", ""] == 1
    assert told(server, "nv_inference_count") == {}
