"""model.json: its keys and values, the folders that it names, and what is refused."""

import pytest
from read_settings import described, refusal, settings


def test_a_model_is_described_without_a_load(version):
    found = described(version)

    assert (found.task, found.context, found.template) == ("generate", 1024, "{{ messages }}")
    assert (found.bos, found.eos) == ("<s>", "</s>")
    assert {"temperature", "schema", "logprobs", "seed", "tokens"} <= found.supports
    assert not {"adapter", "images", "suffix"} & found.supports


def test_a_folder_beside_the_file_is_an_absolute_path_for_vllm(version):
    version.write("model.json", {"model": "weights", "tokenizer": "weights", "seed": 3})

    found = settings(version).arguments

    weights = str(version.path / "weights")
    assert found == {"model": weights, "tokenizer": weights, "seed": 3}


def test_an_absolute_path_and_a_name_at_hugging_face_stay(version, monkeypatch):
    monkeypatch.setattr("backend_vllm.folder.Folder._cached", lambda self, name: None)
    weights = str(version.path / "weights")
    version.write("model.json", {"model": weights})
    assert settings(version).arguments["model"] == weights

    version.write("model.json", {"model": "facebook/opt-125m", "max_model_len": 64})
    found = described(version)

    assert settings(version).arguments["model"] == "facebook/opt-125m"
    assert (found.task, found.context, found.template) == ("generate", 64, "")


def test_without_the_key_model_it_is_the_folder_of_the_file(version):
    version.write("config.json", {"architectures": ["LlamaForCausalLM"]})
    version.write("model.json", {"seed": 1})

    assert settings(version).arguments["model"] == str(version.path)


def test_without_the_key_model_and_without_weights_the_key_is_named(version):
    version.write("model.json", {})

    assert "model.json' has no key 'model', it must name a folder beside it" in refusal(version)


@pytest.mark.parametrize("place", ["./gone", "../gone", "/gone/for/good", ""])
def test_a_path_that_is_not_there_is_named(version, place):
    version.write("model.json", {"model": place})

    said = refusal(version)

    assert f"model.json' has '{place}' as 'model', and there is no '" in said
    assert "it must be a folder beside model.json" in said


@pytest.mark.parametrize("place", ["my model", "a/b/c", "owner/name.git"])
def test_a_text_that_can_be_no_name_is_refused(version, place):
    pytest.importorskip("huggingface_hub", reason="it knows the form of names")
    version.write("model.json", {"model": place})

    said = refusal(version)

    assert f"model 'm': '{place}' is neither a folder beside model.json nor a name at" in said


@pytest.mark.parametrize("place", ["s3://models/llama", "owner/name:Q4_K_M"])
def test_a_form_that_only_vllm_knows_is_left_to_it(version, place):
    version.write("model.json", {"model": place})

    assert settings(version).arguments["model"] == place


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("gpu_memory_utilisation", "gpu_memory_utilization"),
        ("max-model-len", "max_model_len"),
        ("--tensor-parallel-size", "tensor_parallel_size"),
        ("enable_log_request", "enable_log_requests"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(version, key, near):
    version.write("model.json", {"model": "weights", key: 1})

    said = refusal(version)

    assert f"model.json' has the unknown key '{key}'; did you mean '{near}'?" in said


@pytest.mark.parametrize("key", ["qqq", "_api_process_count", "later"])
def test_a_key_that_is_like_no_other_is_refused(version, key):
    version.write("model.json", {"model": "weights", key: 1})

    assert f"model.json' has the unknown key '{key}'" in refusal(version)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("max_model_len", "many", "has \"many\" as 'max_model_len', it must be a whole number"),
        ("max_model_len", 2.5, "has 2.5 as 'max_model_len', it must be a whole number"),
        ("max_num_seqs", True, "has true as 'max_num_seqs', it must be a whole number or null"),
        ("enforce_eager", 1, "has 1 as 'enforce_eager', it must be true or false"),
        ("gpu_memory_utilization", [], "has [] as 'gpu_memory_utilization', it must be a number"),
        ("model", 5, "has 5 as 'model', it must be a text"),
        ("max_num_seqs", "[" * 10**5, "as 'max_num_seqs', it must be a whole number or null"),
        ("device_ids", "0", "has \"0\" as 'device_ids', it must be a list or null"),
        ("limit_mm_per_prompt", 2, "has 2 as 'limit_mm_per_prompt', it must be an object"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_with_what_is_expected(version, key, value, expected):
    version.write("model.json", {"model": "weights", key: value})

    said = refusal(version)
    assert "model.json' has " in said
    assert expected in said


def test_numbers_and_booleans_may_be_texts_as_in_examples_for_triton(version):
    texts = {
        "enable_prefix_caching": "True",
        "max_model_len": "64",
        "gpu_memory_utilization": "0.5",
    }
    version.write("model.json", {"model": "weights", **texts})

    found = settings(version).arguments

    assert found["enable_prefix_caching"] is True
    assert (found["max_model_len"], found["gpu_memory_utilization"]) == (64, 0.5)


def test_values_of_types_that_only_vllm_knows_are_left_to_it(version):
    version.write("model.json", {"model": "weights", "dtype": "half", "max_lora_rank": 16})

    assert settings(version).arguments["dtype"] == "half"


@pytest.mark.parametrize("key", ["skip_tokenizer_init", "enable_prompt_embeds"])
def test_what_the_backend_cannot_do_is_refused_with_its_key(version, key):
    version.write("model.json", {"model": "weights", key: True})

    assert f"model.json' has '{key}', which must be absent: requests have" in refusal(version)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is no JSON"),
        ("[]", "has a list, it must have an object"),
        ("[" * 10**5, "is no JSON"),
    ],
)
def test_a_file_that_is_no_json_object_is_named(version, text, problem):
    version.write("model.json", text)

    assert f"model.json' {problem}" in refusal(version)


def test_a_missing_model_json_is_named(version):
    (version.path / "model.json").unlink()

    assert "unable to find '" in refusal(version)


def test_a_folder_without_config_json_is_refused(version):
    (version.path / "weights" / "config.json").unlink()

    assert "weights/config.json'" in refusal(version)


def test_the_model_of_speculative_decoding_may_be_a_folder_too(version):
    version.write("draft/config.json", {})
    speculative = {"model": "draft", "num_speculative_tokens": 3}
    version.write("model.json", {"model": "weights", "speculative_config": speculative})

    found = settings(version).arguments["speculative_config"]

    assert found == {"model": str(version.path / "draft"), "num_speculative_tokens": 3}
