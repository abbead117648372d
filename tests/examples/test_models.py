"""The files of the example models are in the repository, small, and what `make_models.py` makes."""

import json
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "examples" / "models"
FILES = (
    "breast_cancer/1/model.onnx",
    "digits/1/model.onnx",
    "linear/1/linear/pytorch_model.bin",
    "tumours/1/xgboost.json",
    "wine/1/model.txt",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with the files that the script makes now."""
    folder = tmp_path_factory.mktemp("made")
    command = [sys.executable, ROOT / "examples" / "make_models.py", folder]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder


def test_git_holds_every_file_that_the_script_makes(made):
    tracked = subprocess.run(
        ["git", "ls-files", "examples/models"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()

    found = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    assert found == set(FILES)
    assert {f"examples/models/{name}" for name in found} <= set(tracked)


def test_the_files_are_small():
    sizes = {name: (MODELS / name).stat().st_size for name in FILES}

    assert sum(sizes.values()) < 300_000, sizes


@pytest.mark.parametrize("name", ["digits", "breast_cancer"])
def test_an_onnx_file_has_the_tensors_and_operators_that_the_script_describes(made, name):
    def described(folder):
        graph = onnx.load(folder / name / "1" / "model.onnx").graph
        values = [
            (value.name, value.type.tensor_type.elem_type, len(value.type.tensor_type.shape.dim))
            for value in (*graph.input, *graph.output)
        ]
        weights = {each.name: (each.data_type, list(each.dims)) for each in graph.initializer}
        return values, [node.op_type for node in graph.node], weights

    assert described(MODELS) == described(made)


def test_the_forests_have_the_trees_and_features_that_the_script_describes(made):
    def described(folder):
        text = (folder / "tumours" / "1" / "xgboost.json").read_text()
        learner = json.loads(text)["learner"]
        lines = (folder / "wine" / "1" / "model.txt").read_text().splitlines()
        return (
            int(learner["learner_model_param"]["num_feature"]),
            len(learner["gradient_booster"]["model"]["trees"]),
            [line for line in lines if line.startswith(("num_class=", "max_feature_idx="))],
            sum(line.startswith("Tree=") for line in lines),
        )

    assert described(MODELS) == described(made)
    assert described(MODELS) == (30, 60, ["num_class=3", "max_feature_idx=12"], 120)


def test_the_checkpoint_has_the_tensors_of_a_linear_layer(made):
    reader = runpy.run_path(str(MODELS / "linear" / "1" / "checkpoint.py"))["read"]
    path = Path("linear", "1", "linear", "pytorch_model.bin")

    held, again = reader(MODELS / path), reader(made / path)

    assert zipfile.is_zipfile(MODELS / path)
    assert {name: value.shape for name, value in held.items()} == {"weight": (3, 3), "bias": (3,)}
    for name, value in held.items():
        np.testing.assert_allclose(value, again[name], rtol=1e-4)
