"""A video in front of a slow model: the ensemble runs at the model's speed, with the newest frames."""

import numpy as np
import pytest
from backend_video.films import number_in

import core

SLOW = """
import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.1 * len(requests))
        found = [pb_utils.get_input_tensor_by_name(each, "frame").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("seen", each)]) for each in found]
"""
SLOW_CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "frame" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }
output { name: "seen" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }
"""
ENSEMBLE = """
platform: "ensemble"
input { name: "file" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "seen" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }
output { name: "index" data_type: TYPE_INT64 dims: [ 1 ] }
ensemble_scheduling {
  max_inflight_requests: 1
  step {
    model_name: "video"
    input_map { key: "file" value: "file" }
    output_map { key: "frame" value: "frame" }
    output_map { key: "index" value: "index" }
  }
  step {
    model_name: "slow"
    input_map { key: "frame" value: "frame" }
    output_map { key: "seen" value: "seen" }
  }
}
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory, config):
    pytest.importorskip("backend_python", reason="a Python model is the slow one")
    repository = tmp_path_factory.mktemp("watched")
    configs = {"video": config({"policy": "latest", "realtime": "true"}), "slow": SLOW_CONFIG}
    for name, text in {**configs, "watch": ENSEMBLE}.items():
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(text)
    (repository / "slow" / "1" / "model.py").write_text(SLOW)
    with core.Server(model_repository=str(repository)) as running:
        yield running


def test_a_slow_step_gets_the_newest_frames(watched, film50):
    answers = list(watched.stream("watch", {"file": [film50]}))

    numbers = [number_in(each["seen"]) for each in answers]
    assert numbers == [int(each["index"][0]) for each in answers]
    assert numbers == sorted(numbers)
    # Two seconds at 25 frames per second, of which the model takes at most ten per second.
    assert 3 <= len(numbers) <= 25
    assert np.diff(numbers).max() >= 2
