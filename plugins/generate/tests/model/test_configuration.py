"""The configuration of an engine's model: what it gets, and what a load refuses."""

import contextlib
import json

import pytest
from core_generate.chat import templates

from core.errors import CoreError

from .conftest import Plain, asked, backend_of, parameters, text_of

pytest_plugins = ["core_testing.plugin"]


def test_a_configuration_gets_tensors_decoupling_and_the_parameter_engine(serve):
    config = serve(parameters(context=99, adapters="de,fr")).config("m")

    assert config.max_batch_size == 0
    assert config.model_transaction_policy.decoupled
    assert {each.name for each in config.input if each.optional} >= {"text_input", "stream"}
    assert [each.name for each in config.output][:2] == ["text_output", "finish_reason"]
    assert [(group.count, group.kind) for group in config.instance_group] == [(1, 3)]
    engine = json.loads(config.parameters["engine"].string_value)
    assert engine["task"] == "generate"
    assert engine["context"] == 99
    assert (engine["bos"], engine["eos"]) == ("<s>", "</s>")
    assert engine["adapters"] == ["de", "fr"]
    assert "temperature" in engine["supports"]
    assert "messages" in engine["template"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("max_batch_size: 8", "has max_batch_size 8; its engine batches itself"),
        ("instance_group { count: 2 }", "has 2 instances"),
        ('input { name: "x" data_type: TYPE_FP32 dims: [1] }', "has the input 'x' of config.pbtxt"),
        (parameters(task="dance"), "the task is 'dance', it must be one of"),
    ],
)
def test_a_configuration_that_fits_no_engine_is_refused(serve, config, message):
    with pytest.raises(CoreError, match=message):
        serve(config)


def test_a_model_that_is_not_decoupled_sends_one_response(serve):
    served = serve("model_transaction_policy { decoupled: false }")

    assert text_of([served.ask(asked("ab", max_tokens=2), name="m")]) == "abcd"
    with pytest.raises(CoreError, match="is not decoupled, so it has one response"):
        served.ask(asked("ab", "stream", max_tokens=2), name="m")


@pytest.mark.parametrize("template", ["{{ messages[0].content }} of a load", "{% wrong of a load"])
def test_a_load_compiles_the_chat_template_and_leaves_its_error_to_chats(serve, template):
    serve(backend=backend_of(Plain, template))
    before = templates._read_once.cache_info()

    with contextlib.suppress(templates.TemplateError):
        templates.read_template(template)

    after = templates._read_once.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)
