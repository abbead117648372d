"""The quota holds, and only where it should."""

import asyncio
from types import SimpleNamespace

import core_quota
import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError
from core.request import InferenceRequest
from core.tensor import Tensor

pytest_plugins = ["core_testing.plugin"]

CONFIG = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


class Echo(core.ModelInstance):
    async def execute(self, batch):
        await asyncio.sleep(0)
        return {"y": batch["x"]}


@pytest.fixture(autouse=True)
def quota():
    """The plugin, as --quota=2 --quota-free=free sets it."""
    plugins.hooks().register(core_quota, "quota")
    options = SimpleNamespace(added={"quota": 2, "quota_free": ["free"]})
    core_quota.core_server_starting(SimpleNamespace(options=options))
    yield
    plugins.hooks().unregister(core_quota)


@pytest.fixture
def ask(model_repository, serve_repository):
    """Ask a model several times at once; the answers, or texts of errors."""

    def several(name, count):
        model_repository.add(name, CONFIG)
        served = serve_repository(core.Backend(instance=Echo))
        x = Tensor.of("x", np.ones(1, np.float32))
        for _ in range(2):  # what has been answered counts no more
            found = served.send([InferenceRequest(name, {"x": x}) for _ in range(count)])
        return [each.message if isinstance(each, CoreError) else "answered" for each in found]

    return several


def test_a_request_above_the_quota_is_refused(ask):
    assert ask("m", 3) == ["answered"] * 2 + ["model 'm' has 2 requests already, its quota"]


def test_a_model_that_is_free_has_no_quota(ask):
    assert ask("free", 9) == ["answered"] * 9


def test_a_model_that_fails_to_load_is_named_in_the_log(ask, model_repository, caplog):
    model_repository.add("broken", "max_batch_size: -1")

    with pytest.raises(CoreError):
        ask("m", 1)

    assert "quota: 'broken' 1 will answer nothing" in caplog.text
