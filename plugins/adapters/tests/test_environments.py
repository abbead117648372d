"""Models without a TritonPythonModel are also served in separate environments."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import joblib
import lightgbm
import numpy as np
import pytest
import skops.io
import xgboost
from core_testing import leftovers
from sklearn.linear_model import LinearRegression, LogisticRegression

from core import CoreError

X = np.random.default_rng(0).normal(size=(40, 3))
LABELS = (X[:, 0] > 0).astype(int)
TRUSTED = 'parameters { key: "TRUSTED" value { string_value: "true" } }'
SHARED = 'parameters { key: "EXECUTION_MODE" value { string_value: "shared" } }'
OURS = ("core", "frontends", "backend_", "triton", "_editable", "__editable", "zz_", "pip")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment with all that is installed here, but the server and its backends."""
    folder = tmp_path_factory.mktemp("environment")
    packages = folder / "packages"
    packages.mkdir()
    for found in Path(np.__file__).parents[1].iterdir():
        if not found.name.startswith(OURS) and found.suffix != ".pth":
            (packages / found.name).symlink_to(found)
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder / "own")]
    subprocess.run(command, check=True)
    (site,) = (folder / "own").glob("lib/python3*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    return folder / "own"


@pytest.fixture
def runs_in(environment):
    """An entry of `parameters` in config.pbtxt."""
    return f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{environment}" }} }}'


@pytest.fixture
def runs_there(environment):
    """Check that models run in the environment, and nowhere else."""
    before = leftovers.children(os.getpid())  # of libraries: resource trackers

    def check():
        started = [
            Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
            for pid in leftovers.children(os.getpid())
            if pid not in before
        ]
        assert started == [f"{environment}/bin/python"]

    return check


def test_a_class_with_a_predict(version, server, runs_in, runs_there, environment):
    source = (
        "import sys\n"
        "class Model:\n"
        "    def predict(self, X, features_names=None):\n        return X * 2\n"
        "    def tags(self):\n        return {'prefix': sys.prefix}\n"
    )
    (version(runs_in) / "model.py").write_text(source)
    server.load()

    answer = server.ask({"X": X})

    np.testing.assert_array_equal(answer["predict"], X * 2)
    runs_there()


def flat(repository, settings, config):
    """Write and return a model's folder in MLServer's layout, which has no folders of versions."""
    folder = repository / "example"
    folder.mkdir()
    (folder / "model-settings.json").write_text(json.dumps(settings))
    (folder / "config.pbtxt").write_text(config)
    return folder


def test_files_of_libraries_and_a_folder_for_mlserver(
    version, repository, server, runs_in, runs_there
):
    # In one worker, so that each library is imported once.
    config = runs_in + TRUSTED + SHARED
    linear = LinearRegression().fit(X, LABELS)
    logistic = LogisticRegression().fit(X, LABELS)
    trees = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1).fit(X, LABELS)
    parameters = {"objective": "binary", "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, LABELS), 2)
    skops.io.dump(linear, version(config, "linear") / "model.skops")
    trees.save_model(version(config, "trees") / "model.ubj")
    booster.save_model(version(config, "booster") / "model.txt")
    settings = {
        "implementation": "mlserver_sklearn.SKLearnModel",
        "parameters": {"uri": "./model.joblib"},
    }
    joblib.dump(logistic, flat(repository, settings, config) / "model.joblib")
    for name in ("linear", "trees", "booster", "example"):
        server.load(name)

    def predicted(name, x, of="X"):
        return server.ask({of: x}, name=name)["predict"].ravel()

    single = X.astype(np.float32)
    np.testing.assert_allclose(predicted("linear", X), linear.predict(X))
    np.testing.assert_array_equal(predicted("trees", single), trees.predict(X))
    np.testing.assert_allclose(predicted("booster", X), booster.predict(X))
    np.testing.assert_array_equal(predicted("example", single, "predict"), logistic.predict(single))
    runs_there()


RUNTIME = """
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse

class Runtime(MLModel):
    async def predict(self, payload):
        x = self.decode(payload.inputs[0], default_codec=NumpyCodec)
        return InferenceResponse(
            model_name=self.name, outputs=[NumpyCodec.encode_output("y", x * 3)])
"""


@pytest.mark.skipif(find_spec("mlserver") is None, reason="there is no mlserver")
def test_a_folder_for_mlserver_with_a_custom_runtime(repository, server, runs_in, runs_there):
    settings = {
        "name": "example",
        "implementation": "runtime.Runtime",
        "inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 3]}],
        "outputs": [{"name": "y", "datatype": "FP64", "shape": [-1, 3]}],
    }
    (flat(repository, settings, runs_in) / "runtime.py").write_text(RUNTIME)
    server.load()

    answer = server.ask({"x": X})

    np.testing.assert_array_equal(answer["y"], X * 3)
    runs_there()


def test_a_library_that_the_environment_lacks_is_named(version, server, tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    for found in Path(np.__file__).parents[1].glob("numpy*"):
        (packages / found.name).symlink_to(found)
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    (site,) = bare.glob("lib/python3*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    runs_in = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{bare}" }} }}'
    (version(runs_in) / "model.skops").write_bytes(b"")

    with pytest.raises(CoreError, match="skops"):
        server.load()
