"""Texts with long runs of characters do not reach a splitter of llama.cpp that they would end."""

import base64
import random
from queue import SimpleQueue

import pytest
from backend_llamacpp import runs
from core_generate import Prompt, Sampling
from core_generate.gguf import Metadata, read_metadata
from core_testing.patience import PATIENCE_S

from core.errors import CoreError, Kind

LIMIT = runs.MOST
RUNS = {
    "letters": "a",
    "digits": "7",
    "words": "a1é",
    "letters and marks": "\u0928\u092e\u0938\u094d\u0924\u0947",
    "ideographs": "\u4e2d\u6587",
    "punctuation": "!_-",
    "symbols": "!\N{GRINNING FACE}",
    "spaces": " \n",
}


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("before", [0, 1, LIMIT - 1, LIMIT, 3 * LIMIT + 7])
def test_a_run_is_refused_from_one_character_too_many_on(kind, before):
    begin, end = ("a." * before + "x", "x") if kind == "spaces" else ("a " * before + "x. ", " x")
    run = (RUNS[kind] * (LIMIT + 1))[: LIMIT + 1]

    runs.check(begin + run[:-1] + end)
    with pytest.raises(CoreError, match="more than 4000 letters and digits in a row") as refused:
        runs.check(begin + run + end)

    assert refused.value.kind is Kind.INVALID


def test_usual_texts_pass():
    draw = random.Random(1)
    words = " ".join("".join(draw.choices("abcdef", k=draw.randint(1, 12))) for _ in range(20_000))
    chinese = "".join("\u4e2d\u6587" * draw.randint(1, 30) + "\uff0c" for _ in range(2_000))
    data = base64.b64encode(draw.randbytes(100_000)).decode()

    for text in ("", words, chinese, data, "-" * 80 + "\n" + "=" * LIMIT):
        runs.check(text)


@pytest.mark.parametrize(
    ("kind", "splitter", "bounded"),
    [
        ("gpt2", "gpt-4o", True),
        ("gpt2", "of next year", True),
        ("gpt2", None, True),
        ("gpt2", "llama-bpe", False),
        ("llama", "default", False),
        ("bert", None, False),
    ],
)
def test_texts_are_bounded_for_splitters_that_are_not_known_to_take_any_run(
    kind, splitter, bounded
):
    values = {"tokenizer.ggml.model": kind, "tokenizer.ggml.pre": splitter}

    assert runs.are_bounded(Metadata({k: v for k, v in values.items() if v})) is bounded


def test_a_run_that_would_end_the_process_is_refused(smollm2, tmp_path):
    from backend_llamacpp.engine import LlamaEngine
    from backend_llamacpp.settings import Settings

    file = tmp_path / "model.gguf"
    begin, key, end = smollm2.read_bytes().partition(b"tokenizer.ggml.pre")
    file.write_bytes(begin + key + end.replace(b"smollm", b"gpt-4o", 1))
    metadata = read_metadata(file)
    assert metadata.values["tokenizer.ggml.pre"] == "gpt-4o"
    settings = Settings(context=512, slots=1, threads=1, short_runs=runs.are_bounded(metadata))
    engine = LlamaEngine(file, settings)
    try:
        text, events = "A" * 100_000, SimpleQueue()
        with pytest.raises(CoreError, match="in a row"):
            engine.tokenize(text)
        assert engine.tokenize("AAA") != []

        engine.generate(Prompt(text=text), Sampling(max_tokens=1), events.put)
        assert "in a row" in events.get(timeout=PATIENCE_S).message
    finally:
        engine.close()
