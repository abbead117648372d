"""Parameters in config.pbtxt."""

import pytest
from backend_openvino_genai.files import Facts
from backend_openvino_genai.settings import PARAMETERS, Settings, settings_of

from core.config import ModelConfig
from core.errors import CoreError, Kind


def settings(**parameters):
    config = ModelConfig(name="m")
    for name, value in parameters.items():
        config.parameters[name].string_value = value
    return settings_of(config, Facts(8192, "{{ 1 }}"))


def test_without_parameters_the_files_decide():
    assert settings() == Settings(context=8192, template="{{ 1 }}")


def test_all_parameters_are_read():
    given = {
        "chat_template": "{{ 2 }}",
        "context": "1024",
        "device": "GPU.0",
        "dynamic_split_fuse": "false",
        "enable_prefix_caching": "true",
        "kv_cache_precision": "u8",
        "max_num_batched_tokens": "64",
        "max_num_seqs": "3",
        "num_kv_blocks": "100",
        "threads": "2",
    }

    found = settings(**given)

    assert {*given, "cache_size", "pooling", "task"} == set(PARAMETERS)
    assert found == Settings(
        context=1024,
        template="{{ 2 }}",
        device="GPU.0",
        threads=2,
        sequences=3,
        batched_tokens=64,
        cache_blocks=100,
        prefix_caching=True,
        split_fuse=False,
        cache_precision="u8",
    )
    assert settings(cache_size="2").cache_gb == 2


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("context", "9000", "a number from 16 to 8192"),
        ("context", "-1", "a number from 16 to 8192"),
        ("threads", "two", "a number from 1 to 1024"),
        ("cache_size", "0", "a number from 1 to 65536"),
        ("cache_size", "1.5", "a number from 1 to 65536"),
        ("max_num_seqs", "٣", "a number from 1"),
        ("enable_prefix_caching", "yes", "true or false"),
        ("dynamic_split_fuse", "1", "true or false"),
        ("task", "classify", "one of generate, embed, rank, transcribe"),
        ("kv_cache_precision", "q8_0", "one of f32, f16, bf16, u8, i8, u4"),
    ],
)
def test_a_wrong_value_is_refused_with_name_and_expectation(name, value, expected):
    with pytest.raises(CoreError, match=f"'m': parameter '{name}' is '{value}'") as caught:
        settings(**{name: value})

    assert caught.value.kind is Kind.INVALID
    assert expected in caught.value.message


def test_each_task_has_its_parameters():
    found = settings(task="embed", pooling="mean", threads="1")

    assert (found.task, found.pooling, found.supports) == ("embed", "mean", frozenset())
    with pytest.raises(CoreError, match="'cache_size' is '1', it must be absent for the task 'emb"):
        settings(task="embed", cache_size="1")
    with pytest.raises(CoreError, match="'pooling' is 'sum', it must be one of cls, mean, last"):
        settings(task="embed", pooling="sum")
    with pytest.raises(CoreError, match="'pooling' is 'cls', it must be absent for the task 'gen"):
        settings(pooling="cls")


def test_the_cache_has_one_size():
    with pytest.raises(CoreError, match="'num_kv_blocks' is '5', it must be absent"):
        settings(cache_size="1", num_kv_blocks="5")
