"""A model of this backend, loaded and asked through a whole server."""

import numpy as np
import pytest

from core import InferenceRequest, Tensor
from core.options import Options
from core.server import Server

CONFIG = """
backend: "NAME"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


@pytest.fixture
async def server(tmp_path):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text(CONFIG)
    (tmp_path / "m" / "1" / "model.json").write_text('{"factor": 3}')
    found = Server(Options.defaults(model_repository=[str(tmp_path)]))
    await found.start()
    yield found
    await found.stop(10)


async def test_each_value_is_multiplied_by_the_models_factor(server):
    x = np.array([[1, 2], [3, 4]], np.float32)

    answer = await server.infer(InferenceRequest("m", {"x": Tensor.of("x", x)}))

    np.testing.assert_array_equal(answer.output("y").array, x * 3)
