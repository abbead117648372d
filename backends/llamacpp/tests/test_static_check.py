"""What `core check` finds in a version without loading it."""

import numpy as np
import pytest
from backend_llamacpp import backend
from backend_llamacpp.static_check import check_version
from gguf_files import LLAMA, gguf

from core.config import ModelConfig
from core.errors import CoreError

CONTENT = gguf(LLAMA, {"a": np.ones((2, 8)), "b": np.ones((2, 8))})


@pytest.fixture
def check(tmp_path):
    def check(content=CONTENT, instances=0, **parameters):
        (tmp_path / "model.gguf").write_bytes(content)
        config = ModelConfig(name="m", backend="llamacpp")
        if instances:
            config.instance_group.add(count=instances)
        for name, value in parameters.items():
            config.parameters[name].string_value = value
        return check_version(config, tmp_path, backend), config

    return check


def test_the_file_completes_the_configuration(check):
    whole, config = check()

    assert whole is True
    assert "text_output" in [io.name for io in config.output]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"content": b"GGML"}, "another format"),
        ({"content": gguf({})}, "model.gguf' lacks metadata of a language model: 'general.arch"),
        ({"content": CONTENT[:-80]}, "bytes of its weights are missing"),
        ({"context": "many"}, "parameter 'context'"),
        ({"instances": 2}, "has 2 instances"),
    ],
)
def test_what_a_load_refuses_is_an_error(check, given, text):
    with pytest.raises(CoreError, match=text):
        check(**given)
