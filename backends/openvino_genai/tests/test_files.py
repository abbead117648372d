"""What the files of a version say, without the weights."""

import json

import pytest
from backend_openvino_genai.files import NEEDED, find_files, read_facts
from backend_openvino_genai.model import backend

from core.config import ModelConfig
from core.errors import CoreError, Kind

TOKENIZER = """<net><layers><layer id="0"/></layers><rt_info>
<chat_template value="{{ messages[0].content }}"/></rt_info></net>"""


@pytest.fixture
def made(tmp_path):
    """Return a folder of OpenVINO GenAI whose files are empty, but for the tokenizer."""
    for each in NEEDED:
        (tmp_path / each).write_text(TOKENIZER if "_tokenizer" in each else "")
    return tmp_path


def facts(folder, name=""):
    return read_facts(find_files(ModelConfig(name="m", default_model_filename=name), folder))


def test_context_template_and_special_tokens_of_a_folder_are_read(made):
    (made / "config.json").write_text('{"max_position_embeddings": 2048}')
    tokenizer = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": "{{ 1 }}"}
    (made / "tokenizer_config.json").write_text(json.dumps(tokenizer))

    found = facts(made)

    assert (found.context, found.template, found.bos, found.eos) == (2048, "{{ 1 }}", "<s>", "</s>")


def test_a_folder_without_further_files_has_the_template_of_its_tokenizer(made):
    found = facts(made)

    assert (found.context, found.template) == (4096, "{{ messages[0].content }}")


def test_a_template_in_its_own_file_comes_first(made):
    (made / "tokenizer_config.json").write_text('{"chat_template": "old"}')
    (made / "chat_template.jinja").write_text("new")

    assert facts(made).template == "new"


def test_of_several_templates_the_default_is_taken(made):
    templates = [{"name": "rag", "template": "a"}, {"name": "default", "template": "b"}]
    (made / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}))

    assert facts(made).template == "b"


def test_the_context_of_the_text_part_counts(made):
    (made / "config.json").write_text('{"text_config": {"max_position_embeddings": 77}}')

    assert facts(made).context == 77


def test_the_files_of_the_small_model_are_read(smollm2, folder, tmp_path):
    (tmp_path / "model.gguf").symlink_to(smollm2)

    of_gguf, of_folder = facts(tmp_path), facts(folder)

    assert of_gguf.context == of_folder.context == 8192
    assert of_gguf.template == of_folder.template != ""
    assert of_gguf.eos == "<|im_end|>"


@pytest.mark.parametrize("missing", NEEDED)
def test_a_missing_file_is_named(made, missing):
    (made / missing).unlink()

    with pytest.raises(CoreError, match=f"unable to find .*{missing}"):
        facts(made)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_a_damaged_file_is_named(made, name):
    (made / name).write_text("{")

    with pytest.raises(CoreError, match=name) as caught:
        facts(made)
    assert caught.value.kind is Kind.INVALID


def test_a_damaged_tokenizer_is_named(made):
    (made / "openvino_tokenizer.xml").write_text("<net>")

    with pytest.raises(CoreError, match=r"openvino_tokenizer\.xml' is damaged"):
        facts(made)


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("BertModel", "embed"),
        ("LlamaForCausalLM", "generate"),
        ("GPT2LMHeadModel", "generate"),
        ("BertForSequenceClassification", "rank"),
    ],
)
def test_the_class_of_the_model_shows_its_task(made, architecture, task):
    (made / "config.json").write_text(json.dumps({"architectures": [architecture]}))

    assert facts(made).task == task


def test_only_a_gguf_file_may_be_named(made):
    with pytest.raises(CoreError, match=r"'other\.xml', it must be a GGUF file"):
        facts(made, "other.xml")


def test_the_file_of_the_format_stands_for_the_folder(made):
    assert find_files(
        ModelConfig(default_model_filename="openvino_detokenizer.xml"), made
    ).path == (made)


def test_the_backend_describes_a_folder_without_openvino_genai(made):
    config = ModelConfig(name="m")

    backend.complete(config, made, backend)

    assert json.loads(config.parameters["engine"].string_value)["context"] == 4096
    assert "sampling_parameters" in [each.name for each in config.input]
