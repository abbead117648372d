"""What tokenizer_config.json and the module Pooling say, in the forms that models have."""

import pytest
from core_generate.hugging_face import chat_template, pooling_mode, special_token


def _named(name, template):
    return {"name": name, "template": template}


@pytest.mark.parametrize(
    ("written", "template"),
    [
        ({}, ""),
        ({"chat_template": "{{ messages }}"}, "{{ messages }}"),
        ({"chat_template": [_named("tool_use", "a"), _named("default", "b")]}, "b"),
        ({"chat_template": [_named("tool_use", "a")]}, ""),
        ({"chat_template": [1, None]}, ""),
        ({"chat_template": 3}, ""),
    ],
)  # fmt: skip
def test_the_template_named_default_counts(written, template):
    assert chat_template(written) == template


@pytest.mark.parametrize(
    ("written", "token"),
    [
        ({}, ""),
        ({"eos_token": "</s>"}, "</s>"),
        ({"eos_token": {"content": "</s>", "lstrip": False}}, "</s>"),
        ({"eos_token": None}, ""),
        ({"bos_token": "<s>"}, ""),
    ],
)
def test_a_token_is_a_text_or_an_object(written, token):
    assert special_token(written, "eos") == token


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode": "max"}, "max"),
        ({"pooling_mode": "lasttoken"}, "last"),
        ({"pooling_mode": "mean", "pooling_mode_mean_tokens": True}, "mean"),
    ],
)
def test_the_pooling_has_flags_or_a_word(written, mode):
    assert pooling_mode(written) == mode


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ({}, "none"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "cls, mean"),
        ({"pooling_mode_weightedmean_tokens": True}, "pooling_mode_weightedmean_tokens"),
        ({"pooling_mode": "sum"}, "sum"),
    ],
)
def test_another_pooling_is_refused_with_what_the_file_has(written, shown):
    with pytest.raises(ValueError, match=f"has the pooling {shown}, it must have one of mean, cls"):
        pooling_mode(written)
