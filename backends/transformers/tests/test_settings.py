"""Folders and parameters: what is read, and what is refused with the name of the file or parameter."""

import json

import pytest
from backend_transformers.folder import Folder
from backend_transformers.model import TransformersModel
from backend_transformers.settings import settings_of

import core
from core.config import ModelConfig
from core.errors import CoreError


def changed(folder, file, **values):
    """Change members of a JSON file; None removes one."""
    path = folder / file
    document = json.loads(path.read_text()) | values if path.is_file() else values
    path.write_text(json.dumps({k: v for k, v in document.items() if v is not None}))


def config_of(**parameters):
    config = ModelConfig(name="m")
    for name, value in parameters.items():
        config.parameters[name].string_value = value
    return config


def described(folder, **parameters):
    return TransformersModel.describe(config_of(**parameters), folder, core.Backend)


def test_a_model_is_described_without_a_load(copied):
    changed(copied, "tokenizer_config.json", chat_template="{{ messages }}")

    found = described(copied)

    assert (found.task, found.context, found.template) == ("generate", 1024, "{{ messages }}")
    assert (found.bos, found.eos) == ("<s>", "</s>")


def test_a_file_and_a_parameter_have_the_chat_template(copied):
    (copied / "chat_template.jinja").write_text("from the file")

    assert described(copied).template == "from the file"
    assert described(copied, chat_template="mine").template == "mine"


@pytest.mark.parametrize("text", ['{"chat_template": "of a processor"}', "{"])
def test_the_file_of_a_processor_is_not_read_for_a_model_of_texts(copied, text):
    changed(copied, "tokenizer_config.json", chat_template="of the tokenizer")
    (copied / "chat_template.json").write_text(text)

    assert described(copied).template == "of the tokenizer"


def test_a_model_that_reads_sound_has_the_chat_template_of_its_processor(copied):
    changed(copied, "config.json", architectures=["Qwen2AudioForConditionalGeneration"])
    changed(copied, "tokenizer_config.json", chat_template="of the tokenizer")
    (copied / "preprocessor_config.json").write_text("{}")
    assert described(copied).template == "of the tokenizer"

    (copied / "chat_template.json").write_text('{"chat_template": "of the processor"}')

    assert described(copied).template == "of the processor"


def test_one_of_several_chat_templates_is_the_default(copied):
    templates = [{"name": "tools", "template": "a"}, {"name": "default", "template": "b"}]
    changed(copied, "tokenizer_config.json", chat_template=templates)

    assert described(copied).template == "b"


def test_the_recommended_sampling_and_all_end_tokens_are_read(copied):
    changed(copied, "generation_config.json", temperature=0.6, top_k=20, eos_token_id=[2, 4])

    found = settings_of(config_of(), Folder(copied, "m"))

    assert found.sampling == {"temperature": 0.6, "top_k": 20}
    assert found.end_tokens == {2, 4}


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(copied, file):
    (copied / file).unlink()

    with pytest.raises(CoreError, match=f"unable to find '.*/{file}' for model 'm'"):
        described(copied)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "is no JSON"), ("[]", "is no JSON object"), ("[" * 10**5, "no JSON")],
)
def test_a_file_that_is_no_json_object_is_named(copied, text, problem):
    (copied / "config.json").write_text(text)

    with pytest.raises(CoreError, match=f"config.json' .*{problem}"):
        described(copied)


@pytest.mark.parametrize(
    ("architectures", "message"),
    [
        (["T5ForConditionalGeneration"], "architecture 'T5ForConditionalGeneration'"),
        (None, "null as 'architectures'"),
        (["A", "B"], "as 'architectures', it must have one"),
    ],
)
def test_an_architecture_of_no_task_is_refused(copied, architectures, message):
    changed(copied, "config.json", architectures=architectures)

    with pytest.raises(CoreError, match=message):
        described(copied)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("context", "2000", "a number from 16 to 1024"),
        ("slots", "0", "a number from 1 to 1024"),
        ("threads", "two", "a number from 1"),
        ("batch", "-1", "a number from 1"),
        ("task", "translate", "one of generate, embed, rank, classify"),
        ("dtype", "int3", "one of float32, bfloat16, float16"),
        ("device", "gpu", "'cpu', 'cuda'"),
        ("trust_remote_code", "yes", "one of false, true"),
    ],
)
def test_a_wrong_parameter_is_refused_with_its_name(copied, name, value, expected):
    with pytest.raises(CoreError, match=f"parameter '{name}' is '{value}', it must be {expected}"):
        described(copied, **{name: value})


def test_a_model_that_transformers_does_not_have_is_refused(copied, loaded):
    changed(copied, "config.json", model_type="brandnew", architectures=["BrandnewForCausalLM"])

    with pytest.raises(CoreError, match="model_type 'brandnew', which transformers 5"):
        loaded(copied)


def test_code_in_the_folder_does_not_run(copied, loaded):
    (copied / "evil.py").write_text("raise SystemExit('it runs')")
    auto = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    changed(copied, "config.json", model_type="evil", auto_map=auto)

    with pytest.raises(CoreError, match="'trust_remote_code'"):
        loaded(copied)


def test_layers_without_keys_and_values_are_refused(copied, loaded):
    changed(copied, "config.json", layer_types=["full_attention", "linear_attention"])

    with pytest.raises(CoreError, match="linear_attention"):
        loaded(copied)


def test_weights_that_cannot_be_read_are_an_error_with_the_reason(copied, loaded):
    (copied / "model.safetensors").write_bytes(b"nonsense")

    with pytest.raises(CoreError, match=r"cannot read the model in '.*SafetensorError"):
        loaded(copied)


def test_a_gpu_that_is_not_there_is_refused(copied):
    from backend_transformers.loading import load
    from backend_transformers.settings import Settings

    with pytest.raises(CoreError, match="parameter 'device' is 'cuda:99'"):
        load(Folder(copied, "m"), Settings(device="cuda:99"))


def test_memory_is_that_of_the_weights_and_the_cache(copied, loaded):
    from backend_transformers.engine import TextEngine
    from backend_transformers.settings import Settings

    found = loaded(copied)
    engine = TextEngine(found, Settings(context=64))

    try:
        assert engine.bytes == found.bytes
        assert abs(found.bytes - (copied / "model.safetensors").stat().st_size) < 20_000
    finally:
        engine.close()


def test_models_that_load_at_once_keep_the_weights_that_layers_share(tmp_path, loaded):
    from concurrent.futures import ThreadPoolExecutor

    from core_testing.engines.hugging_face import causal_model

    causal_model(tmp_path, tie_word_embeddings=True)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(loaded, [tmp_path] * 24))

    found = loaded(tmp_path).module

    assert found.lm_head.weight is found.model.embed_tokens.weight


def test_whisper_transcribes_and_nothing_else_does(copied):
    with pytest.raises(CoreError, match="'task' is 'transcribe', it must be another task"):
        described(copied, task="transcribe")
    changed(copied, "config.json", architectures=["WhisperForConditionalGeneration"])
    with pytest.raises(CoreError, match=r"unable to find '.*/preprocessor_config.json'"):
        described(copied)
    (copied / "preprocessor_config.json").write_text("{}")

    found = described(copied)

    assert found.task == "transcribe"
    assert found.supports == {"language", "prompt", "temperature", "times"}
    with pytest.raises(CoreError, match="'task' is 'generate', it must be another task"):
        described(copied, task="generate")
