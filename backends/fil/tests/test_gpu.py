"""Forests on a GPU, by nvForest."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import treelite
from backend_fil import backend
from backend_fil.answers import Answers
from backend_fil.backend import FilModel
from backend_fil.gpu import open_on_gpu
from backend_fil.settings import settings_of

from core.backend import Device
from core.config import ModelConfig
from core.devices.visible import gpus
from core.errors import CoreError, Kind

ON_GPU = "max_batch_size: 1000 instance_group [{ kind: KIND_GPU }]"
CATBOOST = Path(__file__).parent / "data" / "catboost"
has_nvforest = importlib.util.find_spec("nvforest") is not None


@pytest.mark.skipif(has_nvforest, reason="nvForest is installed")
def test_a_gpu_without_nvforest_is_an_error_with_the_package_to_install(forests):
    rows, labels = forests.tumours()
    model = treelite.frontend.from_xgboost(forests.xgboost(rows, labels))
    settings = settings_of(ModelConfig(name="m"))

    with pytest.raises(
        CoreError, match=r"model 'm': an instance on gpu:1 needs nvForest"
    ) as caught:
        open_on_gpu(model, Device("GPU", 1), settings, Answers("identity", "values", 1), 0.5, "m")

    assert caught.value.kind is Kind.UNSUPPORTED
    assert "nvforest-cu13" in caught.value.message
    assert "KIND_CPU" in caught.value.message


def on_the_cpu(model, **options):
    """Stand in for nvforest.load_from_treelite_model: probabilities of treelite."""

    def predict(rows):
        return treelite.gtil.predict(model, rows).reshape(len(rows), -1)

    return SimpleNamespace(predict_proba=predict)


@pytest.mark.parametrize(("parameter", "threshold"), [({}, 0.3), ({"threshold": "0.6"}, 0.6)])
def test_the_threshold_of_a_file_of_catboost_counts_on_a_gpu(
    monkeypatch, tmp_path, parameter, threshold
):
    library = SimpleNamespace(load_from_treelite_model=on_the_cpu)
    monkeypatch.setitem(sys.modules, "nvforest", library)
    (tmp_path / "model.cbm").write_bytes((CATBOOST / "threshold.cbm").read_bytes())
    expected = np.load(CATBOOST / "expected.npz")
    model = FilModel()
    model.name, model.path, model.config = "m", tmp_path, ModelConfig(name="m")
    for name, value in parameter.items():
        model.config.parameters[name].string_value = value
    backend.complete(model.config, tmp_path, backend)
    model.load()

    found = model.on_gpu(Device("GPU", 0)).predict(expected["rows"])

    probability = expected["threshold.probabilities"][:, 1]
    assert (probability > 0.3).sum() > (probability > 0.5).sum() > (probability > 0.6).sum()
    np.testing.assert_array_equal(found[:, 0], probability > threshold)


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
def test_small_batches_stay_on_the_cpu_below_a_threshold(serve, forests):
    rows, labels = forests.tumours()
    model = forests.xgboost(rows, labels, objective="binary:logistic")

    served = serve(model, ON_GPU, transfer_threshold="100", predict_proba="true")

    np.testing.assert_allclose(served(rows[:3]), served(rows)[:3], rtol=1e-4)
