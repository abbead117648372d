"""The operations of a server with the plugin."""

import core_pause
import numpy as np
import pytest

import core
from core import plugins
from core.control import OPERATIONS

X = np.ones(1, np.float32)


@pytest.fixture
def server():
    plugins.hooks().register(core_pause, "pause")
    with core.Server() as found:
        for name in ("m", "other"):
            found.bind(name, lambda x: {"y": x}, example={"x": X})
        yield found
    plugins.hooks().unregister(core_pause)
    core_pause.paused.clear()


def test_a_paused_model_refuses_requests_until_it_is_resumed(server):
    pause = server._inner.control.areas["pause"]

    for _ in range(2):  # the second call has nothing to change
        server._run(lambda: pause.begin("m"))
    assert pause.models() == ["m"]
    with pytest.raises(core.CoreError, match="model 'm' is paused"):
        server.infer("m", {"x": X})
    assert server.infer("other", {"x": X})["y"].tolist() == [1]

    server._run(lambda: pause.end("m"))
    assert pause.models() == []
    assert server.infer("m", {"x": X})["y"].tolist() == [1]


def test_the_table_knows_what_roles_and_workers_need(server):
    rows = [each for name, each in OPERATIONS.items() if name.startswith("pause.")]

    assert {each.name: (each.category, each.changes) for each in rows} == {
        "pause.begin": ("model-repository", True),
        "pause.end": ("model-repository", True),
        "pause.models": ("model-repository", False),
    }
    begin, end = OPERATIONS["pause.begin"], OPERATIONS["pause.end"]
    assert begin.subject({"model": "m"}) == end.subject({"model": "m"}) == "pause m"
    assert end.forgets and not begin.forgets
