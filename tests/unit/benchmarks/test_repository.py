"""The model repositories that are generated."""

import numpy as np
import pytest

from benchmarks.models import mlp, repository
from benchmarks.models.sample import numbers
from core.config import parse_text


@pytest.mark.parametrize("name", repository.REPOSITORIES)
def test_every_model_of_a_repository_has_a_configuration_and_a_version(name, tmp_path):
    folder = repository.write(tmp_path, name)

    models = sorted(folder.iterdir())
    assert models
    for model in models:
        text = (model / "config.pbtxt").read_text()
        assert parse_text(text, model.name).name == model.name
        assert (model / "1").is_dir()


def test_there_are_200_models_in_many(tmp_path):
    assert len(list(repository.write(tmp_path, "many").iterdir())) == 200


def test_a_model_that_batches_differs_from_its_twin_in_that_alone(tmp_path):
    folder = repository.write(tmp_path, "python")
    plain, batched = (
        parse_text((folder / name / "config.pbtxt").read_text(), name)
        for name in ("add_sub", "add_sub_batched")
    )

    assert (plain.max_batch_size, batched.max_batch_size) == (0, 32)
    assert batched.HasField("dynamic_batching") and not plain.HasField("dynamic_batching")
    assert list(plain.input) == list(batched.input)
    assert (folder / "add_sub" / "1" / "model.py").read_text() == (
        folder / "add_sub_batched" / "1" / "model.py"
    ).read_text()


def test_the_ensemble_passes_its_tensor_through_every_step(tmp_path):
    repository.ensemble(tmp_path / "chain", "identity", 3)
    steps = parse_text((tmp_path / "chain" / "config.pbtxt").read_text(), "chain")

    maps = [
        (each.input_map["INPUT0"], each.output_map["OUTPUT0"])
        for each in steps.ensemble_scheduling.step
    ]
    assert maps == [("INPUT0", "between1"), ("between1", "between2"), ("between2", "OUTPUT0")]


def test_the_onnx_file_answers_as_numpy_does(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    mlp.write(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    rows = numbers(3, 64)

    (found,) = session.run(["OUTPUT0"], {"INPUT0": rows})

    np.testing.assert_allclose(found, mlp.forward(rows), rtol=1e-4, atol=1e-5)
