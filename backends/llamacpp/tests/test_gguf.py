"""Reading a GGUF file without its weights."""

import struct

import numpy as np
import pytest
from core_generate.gguf import check_model, check_weights, read_metadata
from gguf_files import LLAMA, gguf

from core.errors import CoreError, Kind


@pytest.fixture
def read(tmp_path):
    def read(data):
        (tmp_path / "model.gguf").write_bytes(data)
        return read_metadata(tmp_path / "model.gguf")

    return read


def test_numbers_texts_and_the_texts_of_special_tokens_are_read(read):
    found = read(gguf(LLAMA))

    assert found.architecture == "llama"
    assert found.number("context_length") == 8192
    assert (found.token("bos"), found.token("eos"), found.token("fim_pre")) == ("<s>", "</s>", "")
    assert found.values["tokenizer.chat_template"] == "{{ messages[0].content }}"


def test_special_tokens_may_be_named_before_the_tokens_are_listed(read):
    found = read(gguf({"tokenizer.ggml.unknown_token_id": 6, **LLAMA}))

    assert found.token("unknown") == "é"


def test_long_arrays_are_skipped_and_short_ones_kept(read):
    heads, scores = [3] * 30, [0] * 5000
    values = {**LLAMA, "llama.attention.head_count_kv": heads, "tokenizer.ggml.scores": scores}
    found = read(gguf({**values, "after": "it"}))

    assert found.values["llama.attention.head_count_kv"] == tuple(heads)
    assert "tokenizer.ggml.scores" not in found.values
    assert found.values["after"] == "it"


@pytest.mark.parametrize("heads", [3, [3] * 30])
def test_the_cache_of_a_token_has_the_keys_and_values_of_all_layers(read, heads):
    found = read(gguf({**LLAMA, "llama.attention.head_count_kv": heads}))

    assert found.cache_numbers() == 2 * 30 * 3 * 64


def test_a_file_of_another_format_is_refused(read):
    with pytest.raises(CoreError, match="does not begin with the letters GGUF") as refused:
        read(b"PK\x03\x04")

    assert refused.value.kind is Kind.INVALID


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GGUF", "it ends within its metadata"),
        (gguf(LLAMA, version=1), "version is 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "at most 65536"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**62), "a text of"),
        (gguf({"a": "b"})[:40], "it ends within its metadata|a text of"),
        (gguf({"a": 1}).replace(struct.pack("<I", 4), struct.pack("<I", 77)), "unknown type 77"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(read, data, reason):
    with pytest.raises(CoreError, match=f"is not a readable GGUF file: .*({reason})"):
        read(data)


def test_every_begin_of_a_file_is_read_or_refused(read):
    data = gguf(LLAMA)

    for length in range(4, len(data)):
        try:
            read(data[:length])
        except CoreError as error:
            assert error.kind is Kind.INVALID


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({}, "'general.architecture' is missing, 'tokenizer.ggml.model' is missing, 'tokenizer"),
        ({"general.architecture": None}, "model: 'general.architecture' is missing; export"),
        ({"general.architecture": 5}, "'general.architecture' is 5, expected a text; export"),
        ({"general.architecture": "qwen"}, "'qwen.context_length' is missing, 'qwen.embedding_length' is"),
        ({"llama.context_length": None}, "model: 'llama.context_length' is missing; export"),
        ({"llama.context_length": "many"}, "'llama.context_length' is 'many', expected a whole number"),
        ({"llama.context_length": float("nan")}, "'llama.context_length' is nan, expected"),
        ({"llama.embedding_length": 0}, "'llama.embedding_length' is 0, expected a whole number above 0"),
        ({"llama.block_count": 0}, "'llama.block_count' is 0, expected a whole number above 0"),
        ({"tokenizer.ggml.model": None}, "model: 'tokenizer.ggml.model' is missing; export"),
        ({"tokenizer.ggml.tokens": None}, "model: 'tokenizer.ggml.tokens' is missing; export"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "model: 'tokenizer.ggml.tokens' is missing; export"),
    ],
)  # fmt: skip
def test_entries_that_every_model_has_are_named_where_they_lack(read, tmp_path, values, fault):
    given = {**LLAMA, **values} if values else {}
    found = read(gguf({key: value for key, value in given.items() if value is not None}))

    with pytest.raises(CoreError, match=f"model.gguf' lacks metadata of a language.*{fault}") as e:
        check_model(tmp_path / "model.gguf", found)

    assert e.value.kind is Kind.INVALID


@pytest.mark.parametrize(
    ("values", "held"),
    [
        ({"general.type": "adapter"}, "an adapter"),
        ({"general.architecture": "clip"}, "an encoder of images or sound"),
    ],
)
def test_a_file_that_holds_no_model_is_refused_with_what_it_holds(read, tmp_path, values, held):
    found = read(gguf({**LLAMA, **values}))

    with pytest.raises(CoreError, match=f"model.gguf' holds {held}, not a language model"):
        check_model(tmp_path / "model.gguf", found)


def test_a_model_without_a_vocabulary_may_say_so(read, tmp_path):
    values = {**LLAMA, "tokenizer.ggml.model": "none"}
    del values["tokenizer.ggml.tokens"]

    check_model(tmp_path / "model.gguf", read(gguf(values)))


def test_weights_that_are_cut_off_are_found(tmp_path):
    path = tmp_path / "model.gguf"
    content = gguf(LLAMA, {"a": np.ones((2, 8)), "b": np.ones((2, 8))})
    path.write_bytes(content)
    check_weights(path)

    path.write_bytes(content[:-80])

    with pytest.raises(CoreError, match="bytes of its weights are missing"):
        check_weights(path)
    path.write_bytes(gguf(LLAMA))
    check_weights(path)
