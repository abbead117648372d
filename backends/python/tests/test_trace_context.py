"""Models and the spans of their requests: the context that they get, and calls below it."""

import json

import numpy as np
import pytest
from backend_python import backend

import core
from core import plugins
from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.telemetry.tracing import TraceExporter
from core.telemetry.tracing.context import parsed
from core.tensor import Tensor

EVERY_MODE = ["process", "shared", "thread", "inline"]

# Returns its context, and that of a model which it calls with its trace, and without.
MODEL = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils


def told(response):
    assert not response.has_error(), response.error().message()
    return json.loads(pb_utils.get_output_tensor_by_name(response, "y").as_numpy()[0])


class TritonPythonModel:
    async def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x")
            found = [request.trace().get_context()]
            if x.as_numpy()[0] == b"ask":
                for more in ({"trace": request.trace()}, {}):
                    asked = pb_utils.InferenceRequest(
                        model_name="asked", requested_output_names=["y"],
                        inputs=[pb_utils.Tensor("x", np.array([b""], object))], **more,
                    )
                    found += told(await asked.async_exec())
            y = np.array([json.dumps(found).encode()], object)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", y)]))
        return responses
"""
CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU } ]
parameters { key: "EXECUTION_MODE" value { string_value: "%s" } }
"""


class Kept(TraceExporter):
    """The plugin and exporter of mode `kept`: keeps traces with their children."""

    takes_context = True

    def __init__(self):
        self.traces = []

    @core.hookimpl
    def core_open_trace_exporter(self, mode):
        return self if mode == "kept" else None

    def export(self, trace):
        self.traces += (trace, *trace.children)


@pytest.fixture
def kept():
    found = Kept()
    plugins.hooks().register(found, "kept")
    yield found
    plugins.hooks().unregister(found)


async def contexts(folder, mode, what, trace_config):
    """Return the contexts of a model that runs in `mode`."""
    for name in ("asking", "asked"):
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(CONFIG % mode)
        (folder / name / "1" / "model.py").write_text(MODEL)
    options = Options.defaults(model_repository=[str(folder)], trace_config=trace_config)
    server = InferenceServer(options, find_backend=lambda name: backend)
    await server.start()
    try:
        x = Tensor.of("x", np.array([what], object))
        response = await server.models.infer(InferenceRequest("asking", {"x": x}))
        return json.loads(response.output("y").array[0])
    finally:
        assert await server.stop(30) == 0


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_a_model_gets_the_context_of_its_span(tmp_path, kept, mode):
    config = {"": [("mode", "kept"), ("rate", "1"), ("level", "TIMESTAMPS")]}

    own, asked, without = await contexts(tmp_path, mode, "ask", config)

    traces = {trace.model_name: trace for trace in kept.traces}
    assert parsed(**json.loads(own)) == traces["asking"].context
    assert parsed(**json.loads(asked)) == traces["asked"].context
    assert traces["asked"].parent_context == traces["asking"].context
    assert without is None
    assert [trace.model_name for trace in kept.traces].count("asked") == 1


@pytest.mark.parametrize("mode", ["process", "thread"])
async def test_in_mode_triton_there_is_no_context(tmp_path, mode):
    file = tmp_path / "trace"
    config = {"": [("rate", "1"), ("level", "TIMESTAMPS")], "triton": [("file", str(file))]}

    assert await contexts(tmp_path / "models", mode, "", config) == [None]
