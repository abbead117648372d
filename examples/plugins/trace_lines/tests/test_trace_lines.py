"""A server whose traces go to the exporter of the package."""

import json

import core_trace_lines
import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError


@pytest.fixture(autouse=True)
def plugin():
    plugins.hooks().register(core_trace_lines, "trace_lines")
    yield
    plugins.hooks().unregister(core_trace_lines)


def server(*settings):
    config = {"": [("mode", "lines"), ("level", "TIMESTAMPS"), ("rate", "1")]}
    return core.Server(
        model_control_mode="explicit", trace_config={**config, "lines": list(settings)}
    )


def half(x):
    if x[0] < 0:
        raise ValueError("below zero")
    return {"y": x / 2}


def test_each_request_is_a_line(tmp_path):
    path = tmp_path / "traces"
    with server(("file", str(path))) as served:
        served.bind("half", half, inputs={"x": ("FP32", [1])}, outputs={"y": ("FP32", [1])})
        served.infer("half", {"x": np.array([4], np.float32)}, id="mine")
        with pytest.raises(CoreError):
            served.infer("half", {"x": np.array([-1], np.float32)})

    good, bad = map(json.loads, path.read_text().splitlines())
    assert (good["model"], good["id"], good["error"], good["calls"]) == ("half", "mine", "", [])
    assert good["us"]["REQUEST_START"] == 0
    assert list(good["us"])[-1] == "REQUEST_END"
    assert "below zero" in bad["error"]


def test_without_a_file_the_server_does_not_start():
    with pytest.raises(CoreError, match="needs --trace-config=lines,file=<path>"):
        server().start()
