"""Spans of real servers: ensembles, models that ask others, workers, and the end."""

import signal

import pytest
from conformance.model import Model
from conformance.server import StartError

MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    async def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x")
            asked = pb_utils.InferenceRequest(model_name="steps", requested_output_names=["y"],
                                              inputs=[x], trace=request.trace())
            answer = await asked.async_exec()
            y = pb_utils.get_output_tensor_by_name(answer, "y").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", y)]))
        return responses
"""
TENSORS = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
CONFIG = f'backend: "python" instance_group [ {{ kind: KIND_CPU }} ] {TENSORS}'
STEPS = f"""platform: "ensemble" {TENSORS}
ensemble_scheduling {{ step [
  {{ model_name: "double" model_version: -1
    input_map {{ key: "x" value: "x" }} output_map {{ key: "y" value: "a" }} }},
  {{ model_name: "double" model_version: -1
    input_map {{ key: "x" value: "a" }} output_map {{ key: "y" value: "y" }} }}
] }}
"""
DOUBLE = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor(
                "y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy() * 2)])
            for request in requests
        ]
"""
MODELS = [
    Model("double", "plain", config=CONFIG, files={"1/model.py": DOUBLE}),
    Model("steps", "plain", config=STEPS),
    Model("caller", "plain", config=CONFIG, files={"1/model.py": MODEL}),
]
TRACE, SPAN = "0af7651916cd43dd8448eb211c12666c", "b7ad6b7169203331"
CLIENT = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=b"}
LONG_MS = 60_000


def flags(collector, *more):
    settings = [
        *("mode=opentelemetry", "level=TIMESTAMPS", "rate=1"),
        f"opentelemetry,url={collector.url}",
        f"opentelemetry,bsp_schedule_delay={LONG_MS}",
        *more,
    ]
    return [f"--trace-config={setting}" for setting in settings]


def ask(server, model, **headers):
    x = {"name": "x", "datatype": "FP32", "shape": [1], "data": [3]}
    response = server.infer(model, {"inputs": [x]}, headers=headers)
    assert response.status == 200, response.body
    return response.json["outputs"][0]["data"]


def end(server):
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0


def test_models_that_a_request_meets_are_spans_sent_at_the_end_at_the_latest(launch, collector):
    server = launch(MODELS, *flags(collector, "opentelemetry,resource=deployment=test"))

    assert ask(server, "caller", **CLIENT) == [12]
    end(server)

    assert collector.tree() == [
        ("", "InferRequest"),
        ("InferRequest", "caller"),
        ("caller", "compute"),
        ("caller", "steps"),
        ("double", "compute"),
        ("double", "compute"),
        ("steps", "double"),
        ("steps", "double"),
    ]
    (root,) = collector.named("InferRequest")
    assert (root.parent, root.resource["deployment"]) == (SPAN, "test")
    assert {(span.trace, span.state) for span in collector.spans} == {(TRACE, "a=b")}


def test_every_worker_sends_its_spans(launch, collector):
    server = launch(MODELS[:1], *flags(collector), "--workers=2")
    for _ in range(40):  # connections, which the kernel spreads
        ask(server, "double")

    end(server)

    assert collector.count("InferRequest") == 40
    assert len({span.resource["process.pid"] for span in collector.spans}) == 2
    assert "each worker sends the spans of its own requests" in server.log_text()


def test_a_collector_that_is_away_costs_no_request_and_no_end(launch, collector):
    nobody = "opentelemetry,url=127.0.0.1:1/v1/traces"
    server = launch(MODELS[:1], *flags(collector, nobody), "--exit-timeout-secs=1")

    assert ask(server, "double") == [6]
    end(server)

    assert "3 spans are lost: http://127.0.0.1:1/v1/traces did not take them" in server.log_text()
    assert "Traceback" not in server.log_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_without_the_plugin_the_server_names_the_package_to_install(launch, collector, workers):
    hidden = {"CORE_BLOCK": "core-opentelemetry"}

    with pytest.raises(StartError) as caught:
        launch([], *flags(collector), f"--workers={workers}", environment=hidden)

    assert caught.value.returncode == 1
    assert caught.value.log.count("pip install --find-links wheels 'core[opentelemetry]'") == 1


def test_a_server_without_that_mode_does_not_import_it(launch, tmp_path):
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").write_text("print('imported', flush=True)")

    server = launch([], environment={"PYTHONPATH": str(tmp_path)})

    assert "imported" not in server.log_text()
