"""The fixtures that authors use in their own tests."""

import numpy as np
import pytest

import core
from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]

CONFIG = """
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""


class Scale(core.ModelInstance):
    def execute(self, batch):
        factor = float((self.model.path / "deep" / "factor").read_text())
        return {"y": batch["x"] * np.float32(factor)}


def test_the_models_of_a_repository_are_served(model_repository, serve_repository):
    for version, factor in enumerate("23", start=1):
        model_repository.add("scale", CONFIG, {"deep/factor": factor}, version=version)

    served = serve_repository(core.Backend(instance=Scale))

    found = served.ask({"x": np.ones((1, 2), np.float32)}, name="scale")
    assert found["y"].tolist() == [[3.0, 3.0]]


def test_a_model_that_does_not_load_raises_its_error(model_repository, serve_repository):
    model_repository.add("wrong", CONFIG.replace("4", "-1"))

    with pytest.raises(CoreError, match="max_batch_size"):
        serve_repository(core.Backend(instance=Scale))


def test_without_a_backend_the_installed_ones_serve(model_repository, serve_repository):
    model_repository.add("lost", CONFIG + 'backend: "no_such_thing"')

    with pytest.raises(CoreError, match="no backend named 'no_such_thing'"):
        serve_repository()


@pytest.mark.gpu
def test_a_test_with_the_mark_gpu_runs_only_with_a_gpu():
    from core.devices.visible import gpus

    assert gpus()
