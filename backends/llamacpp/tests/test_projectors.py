"""Files that encode images or sound beside a model: which one is taken, and what it lets the model read."""

import pytest
from gguf_files import gguf, listener, projector

from core.errors import CoreError


@pytest.fixture
def described(smollm2, tmp_path):
    from backend_llamacpp.settings import describe

    from core.config import ModelConfig

    (tmp_path / "model.gguf").symlink_to(smollm2)

    def described(text="", **files):
        for name, data in files.items():
            (tmp_path / f"{name}.gguf").write_bytes(data)
        config = ModelConfig(name="m", backend="llamacpp")
        if text:
            config.parameters["mmproj"].string_value = text
        return describe(config, tmp_path)

    return described


def test_a_projector_beside_the_model_is_found(described):
    assert "images" not in described().supports

    found = described(**{"mmproj-f16": projector()})

    assert "images" in found.supports and found.marker == "<__media__>"


@pytest.mark.parametrize(
    ("text", "files", "expected"),
    [
        ("other.gguf", {}, "'none', or the name of a file in the folder"),
        ("../model.gguf", {}, "'none', or the name of a file in the folder"),
        ("", {"mmproj-a": b"", "mmproj-b": b""}, "one of the files: mmproj-a.gguf, mmproj-b.gguf"),
        ("mmproj.gguf", {"mmproj": gguf({})}, "a file that encodes images or sound"),
        ("model.gguf", {}, "a file that encodes images or sound"),
    ],
)
def test_a_wrong_projector_is_refused(described, text, files, expected):
    with pytest.raises(CoreError, match=f"model 'm': parameter 'mmproj' is '{text}'.*{expected}"):
        described(text, **files)


def test_a_file_that_encodes_nothing_is_left_out_with_a_warning(described, caplog):
    assert not {"images", "audio"} & described(mmproj=gguf({})).supports
    assert "encodes no images or sound, it is not used" in caplog.text


def test_a_file_that_encodes_sound_lets_the_model_read_sound_only(described):
    found = described(mmproj=listener())

    assert "audio" in found.supports and "images" not in found.supports
    assert found.marker == "<__media__>"


def test_the_header_of_a_projector_is_read_once(described, monkeypatch):
    from backend_llamacpp import settings

    read, wanted = [], settings.read_metadata
    monkeypatch.setattr(
        settings, "read_metadata", lambda file: read.append(file.name) or wanted(file)
    )

    described(mmproj=projector())

    assert read == ["model.gguf", "mmproj.gguf"]


def test_images_can_be_turned_off(described):
    assert "images" not in described("none", mmproj=projector()).supports
