"""multi_lora.json, parameters and files of the model: what is read, and what is refused."""

import pytest
from backend_vllm import backend
from backend_vllm.model import complete
from read_settings import config_of, described, refusal, settings

from core.errors import CoreError

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
