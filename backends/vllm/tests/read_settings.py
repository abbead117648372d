"""Settings of a model from the files of its version folder, and their refusals."""

import pytest
from backend_vllm.model import VllmModel
from backend_vllm.settings import settings_of

import core
from core.config import ModelConfig
from core.errors import CoreError


def config_of(**parameters):
    config = ModelConfig(name="m")
    for name, value in parameters.items():
        config.parameters[name].string_value = value
    return config


def settings(version, config=None, **parameters):
    return settings_of(config or config_of(**parameters), version.path)


def described(version, **parameters):
    return VllmModel.describe(config_of(**parameters), version.path, core.Backend)


def refusal(version, config=None, **parameters):
    with pytest.raises(CoreError) as refused:
        settings(version, config, **parameters)
    return refused.value.message
