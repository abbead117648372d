"""Forests on a GPU, by nvForest."""

import importlib.util

import numpy as np
import pytest
import treelite
from backend_fil.answers import Answers
from backend_fil.gpu import open_on_gpu
from backend_fil.settings import settings_of

from core.backend import Device
from core.config import ModelConfig
from core.devices import gpus
from core.errors import CoreError, Kind

ON_GPU = "max_batch_size: 1000 instance_group [{ kind: KIND_GPU }]"
has_nvforest = importlib.util.find_spec("nvforest") is not None


@pytest.mark.skipif(has_nvforest, reason="nvForest is installed")
def test_an_error_names_the_package_that_a_gpu_needs(forests):
    rows, labels = forests.tumours()
    model = treelite.frontend.from_xgboost(forests.xgboost(rows, labels))
    settings = settings_of(ModelConfig(name="m"))

    with pytest.raises(
        CoreError, match=r"model 'm': an instance on gpu:1 needs nvForest"
    ) as caught:
        open_on_gpu(model, Device("GPU", 1), settings, Answers("identity", "values", 1), "m")

    assert caught.value.kind is Kind.UNSUPPORTED
    assert "nvforest-cu13" in caught.value.message
    assert "KIND_CPU" in caught.value.message


@pytest.mark.gpu
@pytest.mark.skipif(not (gpus() and has_nvforest), reason="needs a GPU and nvForest")
@pytest.mark.parametrize("values", [{}, {"predict_proba": "true"}, {"is_classifier": "false"}])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_gpu_answers_as_the_cpu_does(serve, forests, values, classes):
    rows, labels = forests.tumours() if classes == 2 else forests.wines()
    more = {"objective": "multi:softprob", "num_class": 3} if classes == 3 else {}
    model = forests.xgboost(rows, labels, **{"objective": "binary:logistic", **more})
    on_cpu = treelite.frontend.from_xgboost(model)

    found = serve(model, ON_GPU, **values)(rows)

    form = "values" if values.get("is_classifier") else "pair" if values else "threshold"
    if classes == 3:
        form = "values" if values else "argmax"
    expected = forests.walked(forests.compiled(on_cpu, form), rows)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not (gpus() and has_nvforest), reason="needs a GPU and nvForest")
def test_batches_up_to_the_transfer_threshold_stay_on_the_cpu(serve, forests):
    rows, labels = forests.tumours()
    model = forests.xgboost(rows, labels, objective="binary:logistic")

    served = serve(model, ON_GPU, transfer_threshold="100", predict_proba="true")

    np.testing.assert_allclose(served(rows[:3]), served(rows)[:3], rtol=1e-4)
