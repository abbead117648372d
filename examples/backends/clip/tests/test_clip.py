"""The contract of backends, and the model file."""

import backend_clip
import numpy as np
import pytest
from core_testing import BackendConformance, Example

from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]

X = np.array([[-1, 2], [3, 7]], np.float32)


class TestContract(BackendConformance):
    supports = {"batching", "cpu"}

    @pytest.fixture
    def example(self, tmp_path):
        (tmp_path / "clip.json").write_text('{"low": 0, "high": 6}')
        return Example(
            backend_clip.backend, tmp_path, inputs={"x": X}, expected={"y": np.clip(X, 0, 6)}
        )


def test_a_model_needs_no_configuration(model_repository, serve_repository):
    model_repository.add("m", files={"clip.json": '{"low": 0, "high": 6}'})

    served = serve_repository(backend_clip.backend)

    assert served.ask({"x": X}, name="m")["y"].tolist() == [[0, 2], [3, 6]]


@pytest.mark.parametrize("text", ["{", '{"low": 0}', '{"low": 0, "high": "x"}', "[]"])
def test_a_file_that_is_no_model_is_refused_by_name(model_repository, serve_repository, text):
    model_repository.add("m", files={"clip.json": text})

    with pytest.raises(CoreError, match=r"clip\.json"):
        serve_repository(backend_clip.backend)
