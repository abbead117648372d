"""Parameters of config.pbtxt, and what a frontend is told of a model."""

import pytest
from backend_llamacpp.settings import describe, settings_of
from core_generate.gguf import read_metadata
from gguf_files import LLAMA, gguf

from core.config import ModelConfig
from core.errors import CoreError


def config(**parameters):
    found = ModelConfig(name="m")
    for name, text in parameters.items():
        found.parameters[name].string_value = text
    return found


@pytest.fixture
def described(tmp_path):
    def described(values=LLAMA, **parameters):
        (tmp_path / "model.gguf").write_bytes(gguf(values))
        return describe(config(**parameters), tmp_path)

    return described


@pytest.fixture
def settings(tmp_path):
    def settings(values=LLAMA, **parameters):
        (tmp_path / "model.gguf").write_bytes(gguf(values))
        metadata = read_metadata(tmp_path / "model.gguf")
        return settings_of(config(**parameters), tmp_path, metadata)

    return settings


def test_a_description_comes_from_the_file(described):
    found = described()

    assert (found.task, found.context, found.bos, found.eos) == ("generate", 4096, "<s>", "</s>")
    assert found.template == "{{ messages[0].content }}"
    assert {"temperature", "schema", "logprobs"} <= found.supports
    assert found.supports.isdisjoint({"suffix", "adapter", "images", "min_tokens"})


def test_a_parameter_replaces_what_the_file_says(described):
    found = described(context="8192", chat_template="mine")

    assert (found.context, found.template) == (8192, "mine")


def test_a_context_is_not_longer_than_that_of_the_training(described):
    with pytest.raises(CoreError, match="'context' is '8193', it must be a number from 16 to 8192"):
        described(context="8193")

    assert described({**LLAMA, "llama.context_length": 512}).context == 512


@pytest.mark.parametrize(
    ("pooling", "task"),
    [(None, "generate"), (0, "generate"), (1, "embed"), (3, "embed"), (4, "rank")],
)
def test_the_pooling_of_the_file_decides_about_the_task(described, pooling, task):
    values = dict(LLAMA) if pooling is None else {**LLAMA, "llama.pooling_type": pooling}

    assert described(values).task == task


def test_a_model_without_scores_does_not_rank(described):
    with pytest.raises(CoreError, match=r"'task' is 'rank'.*the file holds no model that ranks"):
        described(task="rank")


def test_a_model_for_embeddings_needs_a_pooling(described):
    with pytest.raises(CoreError, match="set the parameter 'pooling' to one of mean, cls, last"):
        described(task="embed")

    assert described(task="embed", pooling="last").task == "embed"
    assert described({**LLAMA, "llama.pooling_type": 2}, task="embed").task == "embed"


def test_a_suffix_is_supported_if_the_file_has_the_three_tokens(settings):
    tokens = {
        f"tokenizer.ggml.fim_{each}_token_id": 3 + i for i, each in enumerate(("pre", "suf", "mid"))
    }

    found = settings({**LLAMA, **tokens})

    assert "suffix" in found.supports
    assert found.infill == ("<pre>", "<suf>", "<mid>")


def test_adapters_are_files_of_the_version(described, tmp_path):
    (tmp_path / "french.gguf").write_bytes(b"")

    found = described(adapters='{"french": "french.gguf"}')

    assert found.adapters == ("french",)
    assert "adapter" in found.supports


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "x",
        '{"a": 1}',
        '{"a": "../b.gguf"}',
        '{"a": "/b.gguf"}',
        '{"": "b.gguf"}',
        '{"a": "no.gguf"}',
    ],
)
def test_wrong_adapters_are_refused(described, text):
    with pytest.raises(CoreError, match="model 'm': parameter 'adapters'"):
        described(adapters=text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("slots", "0"),
        ("slots", "many"),
        ("slots", "9" * 5000),
        ("threads", "-1"),
        ("batch", "1.5"),
        ("cache_type", "q7"),
        ("pooling", "rank"),
        ("prompt_cache_mb", "-1"),
        ("task", "draw"),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_the_parameter(described, name, text):
    with pytest.raises(CoreError, match=f"model 'm': parameter '{name}' is '"):
        described(**{name: text})


def test_a_missing_file_is_named_with_what_is_there_instead(tmp_path):
    (tmp_path / "other.gguf").write_bytes(b"")

    with pytest.raises(CoreError, match=r"model\.gguf.*other\.gguf"):
        describe(config(), tmp_path)
