"""Make the files of the example models, which are in the repository: python examples/make_models.py [FOLDER]

FOLDER is a repository of models, by default examples/models. `make models` runs this script.

    digits           an MLP for handwritten digits, as ONNX written by hand
    breast_cancer    a pipeline of scikit-learn, as ONNX by skl2onnx, without any config.pbtxt
    linear           the weights of a linear regression, as a checkpoint of torch
    tumours          a forest of XGBoost
    wine             a forest of LightGBM

All are trained on data of scikit-learn; equal data and versions give equal files. It takes a few seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import lightgbm
import numpy as np
import onnx
import torch_checkpoint
import xgboost
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn import datasets
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MODELS = Path(__file__).parent / "models"
OPSET = 17
IR_VERSION = 8  # with opset 17, for every onnxruntime since 1.12
TRAINING = 1500  # of the 1,797 digits; the others are for the clients


def main(folder: Path = MODELS) -> None:
    make_digits(folder / "digits")
    make_breast_cancer(folder / "breast_cancer")
    make_linear(folder / "linear")
    make_tumours(folder / "tumours")
    make_wine(folder / "wine")


def make_digits(model: Path) -> None:
    """pixels FP32[n, 8, 8], 0 to 16 → probabilities FP32[n, 10]"""
    digits = datasets.load_digits()
    network = MLPClassifier((64,), alpha=0.1, max_iter=500, random_state=0)
    network.fit(digits.data[:TRAINING] / 16, digits.target[:TRAINING])
    report(model, network.score(digits.data[TRAINING:] / 16, digits.target[TRAINING:]))

    (hidden, output), (hidden_bias, output_bias) = network.coefs_, network.intercepts_
    weights = {
        "hidden": hidden / 16,  # so that clients send grey values as they are
        "hidden_bias": hidden_bias,
        "output": output,
        "output_bias": output_bias,
    }
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["pixels"], ["flat"]),
            helper.make_node("Gemm", ["flat", "hidden", "hidden_bias"], ["sums"]),
            helper.make_node("Relu", ["sums"], ["active"]),
            helper.make_node("Gemm", ["active", "output", "output_bias"], ["scores"]),
            helper.make_node("Softmax", ["scores"], ["probabilities"]),
        ],
        "digits",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()],
    )
    opset = helper.make_opsetid("", OPSET)
    save(helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION), model)


def make_breast_cancer(model: Path) -> None:
    """features FP32[n, 30] → label INT64[n], probabilities FP32[n, 2]"""
    data = datasets.load_breast_cancer()
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    pipeline.fit(data.data[:400], data.target[:400])
    report(model, pipeline.score(data.data[400:], data.target[400:]))

    made = to_onnx(
        pipeline,
        initial_types=[("features", FloatTensorType([None, data.data.shape[1]]))],
        options={id(pipeline): {"zipmap": False}},  # probabilities as a tensor
        target_opset={"": OPSET, "ai.onnx.ml": 3},
    )
    made.ir_version = IR_VERSION
    save(made, model)


def make_linear(model: Path) -> None:
    """The state of a torch.nn.Linear(3, 3)."""
    data = datasets.load_linnerud()
    regression = LinearRegression().fit(data.data, data.target)
    report(model, regression.score(data.data, data.target))

    path = model / "1" / "linear" / "pytorch_model.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    weight, bias = regression.coef_, regression.intercept_
    torch_checkpoint.write(
        path, {"weight": weight.astype(np.float32), "bias": bias.astype(np.float32)}
    )


def make_tumours(model: Path) -> None:
    """30 features of a tumour → malignant or benign: 60 trees of XGBoost, of depth 3."""
    data = datasets.load_breast_cancer()
    forest = xgboost.XGBClassifier(n_estimators=60, max_depth=3, n_jobs=1)
    forest.fit(data.data[:400], data.target[:400])
    report(model, forest.score(data.data[400:], data.target[400:]))

    path = model / "1" / "xgboost.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    forest.get_booster().save_model(path)


def make_wine(model: Path) -> None:
    """13 measurements of a wine → its cultivar: 40 trees of LightGBM for each of the three."""
    data = datasets.load_wine()
    order = np.random.default_rng(0).permutation(len(data.target))
    known, asked = order[:120], order[120:]
    forest = lightgbm.LGBMClassifier(n_estimators=40, num_leaves=8, n_jobs=1, verbose=-1)
    forest.fit(data.data[known], data.target[known])
    report(model, (forest.predict(data.data[asked]) == data.target[asked]).mean())

    path = model / "1" / "model.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    forest.booster_.save_model(path)


def save(made: onnx.ModelProto, model: Path) -> None:
    onnx.checker.check_model(made, full_check=True)
    path = model / "1" / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(made, path)


def report(model: Path, score: float) -> None:
    print(f"{model.name}: score {score:.3f}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
