"""The endpoints of Amazon SageMaker for many models, which are loaded and unloaded."""

import os
import pathlib
import shutil
import uuid

import numpy as np
import pytest
from conformance.catalog import identity
from conformance.model import Model, as_model
from conformance.platform_port import skip_original, with_tail
from conformance.protocol import binary_tensor, data_of, outputs_of, refused, tensor, wait_until
from conformance.sagemaker import BINARY, BINARY_OUTPUT, BODY, split, start

TARGET = "X-Amzn-SageMaker-Target-Model"
TWO = np.array([1, 2], "<f4").tobytes()
# SageMaker unpacks every model to MODELS/<hash>/model.
MODELS = pathlib.Path("/opt/ml/models")


@pytest.fixture(scope="module")
def archive():
    """Write what SageMaker would have unpacked: (hash, url) of new folders with those models."""
    missing = [folder for folder in (MODELS, MODELS.parent) if not folder.exists()]
    try:
        MODELS.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        pytest.skip(f"{MODELS} cannot be made: {error}")
    if not os.access(MODELS, os.W_OK | os.X_OK):
        pytest.skip(f"{MODELS} cannot be written")
    made = []

    def new(*models, itself=False):
        name = f"conformance{uuid.uuid4().hex}"
        url = MODELS / name / "model"
        made.append(url.parent)
        url.parent.mkdir()
        if itself:  # the folder of the url is the model's
            Model("model", *models).write(url.parent)
        else:
            url.mkdir()
            for entry in models:
                as_model(entry).write(url)
        return name, str(url)

    yield new
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)
    for folder in missing:
        try:
            folder.rmdir()
        except OSError:
            pass  # another run has models there


@pytest.fixture(scope="module")
def many(launch):
    return start(launch, [], "--model-control-mode=explicit")


@pytest.fixture(scope="module")
def loaded(many, archive):
    """(hash, url) of a loaded model that only reading tests share."""
    name, url = archive("plain")
    response = many.load(name, url)
    assert (response.status, response.body) == (200, b"")
    return name, url


def test_server_without_models_answers_ping(many):
    assert many.get("/ping").status == 200


def test_models_are_listed_with_their_urls(many, loaded):
    name, url = loaded
    response = many.get("/models")
    assert response.status == 200
    assert set(response.json) == {"models"}
    assert {"modelName": name, "modelUrl": url} in response.json["models"]


def test_one_model_tells_its_url(many, loaded):
    name, url = loaded
    response = many.get(f"/models/{name}")
    assert response.status == 200
    assert response.json == {"modelName": name, "modelUrl": url}


def test_model_is_named_by_its_hash(many, loaded):
    name, _ = loaded
    assert many.server.ready(name)
    assert many.invoke(name, BODY).json["model_name"] == name


def test_invoke_answers_json(many, loaded):
    response = many.invoke(loaded[0], BODY)
    assert response.headers["Content-Type"] == "application/json"
    assert data_of(response) == [2, 4]


def test_invoke_takes_and_gives_binary_tensors(many, loaded):
    body, kind = with_tail(
        BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])], "outputs": BINARY_OUTPUT}, TWO
    )
    _, data = split(many.invoke(loaded[0], body, {"Content-Type": kind}))
    assert np.frombuffer(data, "<f4").tolist() == [2, 4]


@pytest.mark.parametrize("size", ["-5", "100000"])
def test_invoke_refuses_a_wrong_header_size(many, loaded, size):
    body, _ = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(many.invoke(loaded[0], body, {"Content-Type": BINARY + size}), 400)


@pytest.mark.parametrize("body", [b"{", {"inputs": [tensor("ABSENT", [1])]}])
def test_invoke_refuses_a_wrong_request(many, loaded, body):
    refused(many.invoke(loaded[0], body), 400)


@pytest.mark.parametrize(
    "method, path", [("GET", ""), ("DELETE", ""), ("GET", "/invoke"), ("POST", "/invoke")]
)
def test_unknown_hash_is_not_found(many, method, path):
    assert many.request(method, f"/models/absent{path}", b"").status == 404


def test_model_is_not_loaded_twice(many, loaded):
    refused(many.load(*loaded), 409)
    assert data_of(many.invoke(loaded[0], BODY)) == [2, 4]


def test_hash_is_not_used_twice(many, loaded, archive):
    _, url = archive("plain")
    refused(many.load(loaded[0], url), 409)
    assert many.get(f"/models/{loaded[0]}").json["modelUrl"] == loaded[1]


def test_unloaded_model_is_not_found_until_it_is_loaded_again(many, archive):
    name, url = archive("plain")
    assert many.load(name, url).status == 200
    assert many.unload(name).status == 200
    assert not many.server.ready(name)
    assert many.get(f"/models/{name}").status == 404
    assert many.invoke(name, BODY).status == 404
    assert many.unload(name).status == 404
    assert name not in many.get("/models").body.decode()
    assert many.load(name, url).status == 200
    assert data_of(many.invoke(name, BODY)) == [2, 4]


def test_header_names_the_model_inside_the_server(many, archive):
    name, url = archive("plain")
    header = {TARGET: f"{name}.tar.gz"}
    assert many.load(name, url, header).status == 200
    assert many.server.ready(f"{name}.tar.gz") and not many.server.ready(name)
    assert many.get(f"/models/{name}").json == {"modelName": name, "modelUrl": url}
    assert many.invoke(name, BODY, header).json["model_name"] == f"{name}.tar.gz"
    assert many.unload(name, header).status == 200
    assert not many.server.ready(f"{name}.tar.gz")
    assert many.invoke(name, BODY, header).status == 404


def test_folder_of_the_url_may_be_the_model(many, archive):
    name, url = archive("plain", itself=True)
    assert many.load(name, url).status == 200
    assert data_of(many.invoke(name, BODY)) == [2, 4]
    assert many.get(f"/models/{name}").json["modelUrl"] == str(pathlib.Path(url).parent)
    assert many.unload(name).status == 200
    assert many.invoke(name, BODY).status == 404


def test_folder_of_the_models_may_lie_deeper(many, archive):
    name, url = archive()
    (pathlib.Path(url) / "deeper").mkdir()
    Model("plain").write(pathlib.Path(url) / "deeper")
    assert many.load(name, f"{url}/deeper").status == 200
    assert data_of(many.invoke(name, BODY)) == [2, 4]


def test_name_in_the_configuration_does_not_matter(many, archive):
    name, url = archive(
        Model(
            "plain",
            config="""
name: "another"
backend: "python"
max_batch_size: 0
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
""",
        )
    )
    assert many.load(name, url).status == 200
    assert many.invoke(name, BODY).json["model_name"] == name
    assert many.server.get(f"/v2/models/{name}/config").json["name"] == name


def test_ensemble_is_loaded_and_unloaded_with_its_steps(many, archive):
    steps = ["add_sub", identity("identity_fp32", "FP32")]
    name, url = archive("ensemble_linear", *steps, "plain")
    assert many.load(name, url).status == 200
    response = many.invoke(
        name,
        {"inputs": [tensor("LEFT", [1, 2, 3, 4], [1, 4]), tensor("RIGHT", [1] * 4, [1, 4])]},
    )
    assert outputs_of(response)["RESULT"]["data"] == [2, 3, 4, 5]
    assert many.server.ready("add_sub") and many.server.ready("identity_fp32")
    assert not many.server.ready("plain")  # it is no step
    assert many.unload(name).status == 200
    assert wait_until(lambda: not many.server.ready("add_sub"))
    assert wait_until(lambda: not many.server.ready("identity_fp32"))


def test_broken_model_is_refused_until_it_is_repaired(many, archive):
    name, url = archive("fail_init")
    assert "refuses to initialize" in refused(many.load(name, url), 400)
    assert many.get(f"/models/{name}").status == 404
    assert many.invoke(name, BODY).status == 404
    shutil.rmtree(pathlib.Path(url) / "fail_init")
    Model("fail_init", "plain").write(url)
    assert many.load(name, url).status == 200
    assert data_of(many.invoke(name, BODY)) == [2, 4]


def test_load_without_enough_memory_has_a_status_of_its_own(many, archive):
    code = """
class TritonPythonModel:
    def initialize(self, args):
        raise RuntimeError("CUDA out of memory")

    def execute(self, requests):
        return []
"""
    name, url = archive(Model("fail_init", files={"1/model.py": code}))
    assert "out of memory" in refused(many.load(name, url), 507)
    assert many.get(f"/models/{name}").status == 404


@pytest.fixture(scope="module")
def moody(many, archive):
    """Return the hash of a model that raises an error whose text is its input."""
    code = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        text = pb_utils.get_input_tensor_by_name(requests[0], "MODE").as_numpy()[0]
        raise RuntimeError(text.decode())
"""
    name, url = archive(Model("faulty", files={"1/model.py": code}))
    assert many.load(name, url).status == 200
    return name


@pytest.mark.parametrize(
    "text", ["CUDA out of memory", "Out of memory", "MemoryError", "No space left on device"]
)
def test_invoke_without_enough_memory_has_a_status_of_its_own(many, moody, text):
    response = many.invoke(moody, {"inputs": [tensor("MODE", [text], [1], "BYTES")]})
    assert text in refused(response, 507)


def test_other_errors_of_the_model_are_bad_requests(many, moody):
    response = many.invoke(moody, {"inputs": [tensor("MODE", ["just so"], [1], "BYTES")]})
    assert "just so" in refused(response, 400)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "opt/ml/models/absent/model",
        f"{MODELS}/absent/model",
        f"{MODELS}/../models/absent/model",
        "/dev/absent",
        "/proc/absent",
        "/sys/absent",
    ],
)
def test_url_without_a_repository_is_refused(many, url):
    assert many.load("absent", url).status == 400
    assert many.get("/models/absent").status == 404


def test_folder_without_a_model_is_refused(many, archive):
    name, url = archive()
    refused(many.load(name, url), 400)
    assert many.get(f"/models/{name}").status == 404


@pytest.mark.parametrize("way", ["{}", "/opt/ml/models/../../..{}"])
def test_url_outside_the_folder_of_models_is_refused(many, launcher, tmp_path, way):
    skip_original(launcher, "the original server of 24.10 loads from any folder")
    Model("plain").write(tmp_path)
    assert many.load("outside", way.format(tmp_path)).status == 400
    assert many.get("/models/outside").status == 404


@pytest.mark.parametrize("body", [b"", b"[]", {}, {"model_name": "absent"}])
def test_load_needs_a_name_and_a_url(many, body):
    refused(many.post("/models", body), 400)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        {"model_name": 5, "url": f"{MODELS}/absent/model"},
        {"model_name": "absent", "url": 5},
    ],
)
def test_malformed_load_is_refused(many, launcher, body):
    skip_original(launcher, "ends the original server of 24.10")
    refused(many.post("/models", body), 400)


def test_models_are_loaded_under_explicit_control_only(launch_once):
    uncontrolled = start(launch_once, [])
    refused(uncontrolled.load("absent", f"{MODELS}/absent/model"), 400)
    assert uncontrolled.get("/models").json == {"models": []}
