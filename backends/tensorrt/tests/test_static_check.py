"""What `core check` finds in a version without TensorRT and without a GPU."""

import pytest
from backend_tensorrt import backend
from backend_tensorrt.static_check import check_version

from core.config import ModelConfig
from core.errors import CoreError


def config(**fields):
    made = ModelConfig(name="m", **fields)
    made.input.add(name="x", data_type=11, dims=[4])
    made.output.add(name="y", data_type=11, dims=[4])
    return made


def test_an_engine_with_a_full_configuration_says_all(tmp_path):
    (tmp_path / "model.plan").write_bytes(b"ftrt1234")

    assert check_version(config(), tmp_path, backend) is True
    assert check_version(ModelConfig(name="m"), tmp_path, backend) is False


def test_each_compute_capability_needs_its_engine(tmp_path):
    (tmp_path / "old.plan").write_bytes(b"ftrt1234")
    made = config(cc_model_filenames={"7.5": "old.plan"})
    assert check_version(made, tmp_path, backend) is True

    made.cc_model_filenames["9.0"] = "new.plan"

    with pytest.raises(CoreError, match=r"unable to find .*new\.plan"):
        check_version(made, tmp_path, backend)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x08\x08", "probably an ONNX model"),
        (b"GGUF\x03", "a GGUF file"),
        (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"),
    ],
)
def test_a_file_of_another_format_is_an_error(content, text, tmp_path):
    (tmp_path / "model.plan").write_bytes(content)

    with pytest.raises(CoreError, match=text):
        check_version(config(), tmp_path, backend)
