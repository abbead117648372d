"""The gauge of LoRA adapters has the labels that the inference gateway of Kubernetes reads."""

import time
import urllib.request

import pytest

pytest.importorskip("backend_testing.letters")

NAME = "core_openai_lora_requests_info"


@pytest.fixture
def lines(open_server, tmp_path):
    """Return a function (options) that returns the lines of the gauge of a server with two models."""
    for name, adapters in (("plain", ""), ("speaker", "loud,soft")):
        (tmp_path / name / "1").mkdir(parents=True)
        written = f'parameters {{ key: "adapters" value {{ string_value: "{adapters}" }} }}'
        (tmp_path / name / "config.pbtxt").write_text(f'backend: "letters" {written}')

    def found(**options):
        server, _ = open_server(model_repository=[str(tmp_path)], **options)
        port = server.serve(metrics_port=0)["metrics"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return [each for each in text.splitlines() if each.startswith(NAME)]

    return found


@pytest.mark.parametrize("separator", [":", "-lora-"])
def test_the_adapters_are_named_as_in_the_field_model(lines, separator):
    before = time.time()

    (line,) = lines(openai_lora_separator=separator)

    labels, _, value = line.rpartition(" ")
    assert before - 1 <= float(value) <= time.time() + 1
    for label in (
        'model="speaker"',
        'version="1"',
        f'running_lora_adapters="speaker{separator}loud,speaker{separator}soft"',
        'waiting_lora_adapters=""',
        'max_lora="2"',
    ):
        assert label in labels


def test_a_name_with_a_comma_is_left_out(lines):
    assert lines(openai_lora_separator=",") == []


@pytest.mark.parametrize("options", [{"openai_lora_separator": ""}, {"allow_openai": False}])
def test_without_adapters_in_the_field_model_there_is_no_gauge(lines, options):
    assert lines(**options) == []
