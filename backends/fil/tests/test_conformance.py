"""The contract that every backend keeps."""

import numpy as np
import pytest
from backend_fil import backend

from core.testing import BackendConformance, Example

CONFIG = """
    backend: "fil" max_batch_size: 8
    input [{ name: "input__0" data_type: TYPE_FP32 dims: [ -1 ] }]
    parameters { key: "model_type" value { string_value: "xgboost_ubj" } }
    parameters { key: "predict_proba" value { string_value: "true" } }
"""


class TestFil(BackendConformance):
    supports = {"batching", "cpu", "empty_batch"}

    @pytest.fixture
    def example(self, tmp_path, forests):
        """The probabilities of both classes; rows of any other number of features make it raise."""
        rows, labels = forests.tumours()
        model = forests.xgboost(forests.with_gaps(rows), labels, objective="binary:logistic")
        forests.save(model, tmp_path)
        rows = rows[:4]
        positive = model.inplace_predict(rows)
        return Example(
            backend,
            tmp_path,
            inputs={"input__0": rows},
            expected={"output__0": np.stack([1 - positive, positive], 1)},
            config=CONFIG,
            failing={"input__0": rows[:, :7]},
        )
