"""GenAiEngine with the real, small model, loaded from a folder."""

import json
import re
import subprocess
import sys
import threading
import time

import pytest
from core_generate import Prompt, PromptTooLong, Sampling, Structure, StructureRefused
from core_testing.engines.events import Events

from core.errors import CoreError, Kind

CHAT = "<|im_start|>user\nSay only: yes<|im_end|>\n<|im_start|>assistant\n"


def whole(events):
    return "".join(event.text for event in events)


def refused(generated, error=CoreError, **asked):
    with pytest.raises(error) as caught:
        generated(**asked)
    assert caught.value.kind is Kind.INVALID
    return caught.value.message


def test_a_greedy_answer_is_counted_and_ends_with_its_reason(generated):
    events = generated(max_tokens=8)

    assert "Paris" in whole(events)
    assert events[-1].finish == "length"
    assert sum(len(event.tokens) for event in events) == 8
    assert events[-1].prompt_tokens == 5


def test_the_end_of_the_text_ends_the_generation(generated):
    events = generated(CHAT, max_tokens=200)

    assert events[-1].finish == "stop"
    assert "<|im_end|>" not in whole(events)


def test_the_token_that_begins_a_text_is_not_doubled(engine):
    (begin,) = engine.tokenize("<|im_start|>", special=False)

    assert engine.tokenize(CHAT).count(begin) == 2


def test_characters_of_several_tokens_come_whole(generated, engine):
    text = "日本語 🙂 naïve"
    tokens = engine.tokenize(text)

    assert engine.detokenize(tokens) == text
    events = generated(f"Repeat: {text}\nRepeat: {text}\nRepeat:", max_tokens=24)
    assert "\ufffd" not in whole(events[:-1])


@pytest.mark.parametrize("choices", [("yes", "no"), ('"a\\b"\n', "über"), ("x",), ("[a-z]+ {",)])
def test_one_of_the_choices_is_generated(generated, choices):
    assert whole(generated(structure=Structure(choices=choices), max_tokens=32)) in choices


def test_any_json_object_is_an_object(generated):
    text = whole(generated("JSON:", structure=Structure(schema=True), max_tokens=100))

    assert text.lstrip().startswith("{")


def test_a_schema_is_kept_while_other_texts_are_free(generated, engine):
    schema = {"type": "object", "properties": {"n": {"enum": [17, 18]}}, "required": ["n"]}
    structure = Structure(schema={**schema, "additionalProperties": False})
    takers = [Events() for _ in range(4)]
    for i, taker in enumerate(takers):
        sampling = Sampling(structure=structure if i % 2 else None, temperature=0.0, max_tokens=48)
        engine.generate(Prompt(text="JSON with a number:"), sampling, taker)

    texts = [whole(taker.all()) for taker in takers]
    assert all(json.loads(text)["n"] in (17, 18) for text in texts[1::2])


def test_a_grammar_is_followed(generated):
    structure = Structure(grammar='root ::= [a-c]{2,4} "!"')

    assert re.fullmatch("[a-c]{2,4}!", whole(generated(structure=structure)))


@pytest.mark.parametrize(
    ("structure", "reason"),
    [
        (Structure(grammar="root ::= ("), "the grammar cannot be compiled: EBNF"),
        (Structure(grammar='start ::= "a"'), 'root rule with name "root" is not found'),
        (Structure(grammar="root ::= " + "(" * 100_000), "100000 nested brackets"),
        (Structure(regex="(["), "the regular expression cannot be compiled: Regex"),
        (Structure(regex="(?=a)b"), "Lookahead is not supported"),
        (Structure(schema={"type": "unknown"}), "the JSON schema cannot be compiled: Unsupported"),
        (Structure(schema={"$ref": "#/nowhere"}), "the JSON schema cannot be compiled"),
        (Structure(schema={"properties": {"a": {"not": {}}}}), "has 'not'"),
        (Structure(choices=("a" * 2**20,)), "at most 1048576"),
    ],
    ids=range(9),
)
def test_a_structure_that_cannot_be_followed_is_refused(generated, structure, reason):
    message = refused(generated, StructureRefused, structure=structure)

    assert reason in message
    assert "jenkins" not in message  # the places of OpenVINO's source are left out
    assert whole(generated(max_tokens=4))  # it goes on


def test_a_property_may_have_the_name_of_a_keyword_that_is_refused(generated):
    schema = {"type": "object", "properties": {"not": {"type": "boolean"}}, "required": ["not"]}

    text = whole(generated(structure=Structure(schema=schema), max_tokens=60))

    assert '"not"' in text


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"logprobs": 2}, "'logprobs' is 2, it must be 0"),
        ({"ignore_eos": True, "stop_tokens": (3,)}, "'stop_token_ids' with 'ignore_eos'"),
        ({"ignore_eos": True, "structure": Structure(regex="a")}, "'ignore_eos' with a structure"),
        ({"min_tokens": 2, "structure": Structure(regex="a")}, "'min_tokens' with a structure"),
        ({"min_p": 1.0, "temperature": 1.0}, "min_p must be in"),
    ],
    ids=range(5),
)
def test_what_the_engine_would_ignore_is_refused(generated, asked, reason):
    assert reason in refused(generated, **asked)


def test_a_prompt_that_is_too_long_is_refused_with_both_numbers(generated):
    assert "600 tokens, and the context of the model is 512" in refused(
        generated, PromptTooLong, tokens=[100] * 600
    )


@pytest.mark.parametrize("tokens", [[10**6], [2**31 - 1]])
def test_tokens_outside_the_vocabulary_are_refused(generated, tokens):
    assert "vocabulary" in refused(generated, tokens=tokens)


def test_an_empty_prompt_is_refused(generated):
    assert "no tokens" in refused(generated, text="")


def test_requests_without_a_seed_differ(generated):
    texts = {whole(generated(temperature=1.5, max_tokens=12)) for _ in range(6)}

    assert len(texts) > 1


def test_other_threads_run_while_a_prompt_is_computed(generated):
    gaps, over = [], threading.Event()

    def tick():
        before = time.monotonic()
        while not over.is_set():
            time.sleep(0.001)
            now = time.monotonic()
            gaps.append(now - before)
            before = now

    ticking = threading.Thread(target=tick)
    ticking.start()
    started = time.monotonic()
    generated(tokens=[100] * 500, max_tokens=1)
    took = time.monotonic() - started
    over.set()
    ticking.join()

    # Two steps of 256 tokens: had they held the GIL, a gap would last half of the time.
    assert max(gaps) < took / 4


def test_what_runs_is_counted(engine):
    events = Events()
    generation = engine.generate(
        Prompt(text="Once"), Sampling(max_tokens=400, ignore_eos=True), events
    )
    events.next()

    status = engine.status()
    assert (status.waiting, status.running) == (0, 1)
    assert 0 < status.cache_use <= 1
    assert engine.cache_bytes() > 0
    generation.cancel()
    assert engine.status().running == 0


def test_a_full_cache_ends_a_generation_with_an_error_and_the_next_one_runs(folder):
    from backend_openvino_genai.engine import GenAiEngine
    from backend_openvino_genai.settings import Settings

    engine = GenAiEngine(folder, Settings(context=8192, threads=1, cache_blocks=3))
    try:
        events = Events()
        sampling = Sampling(max_tokens=500, ignore_eos=True, temperature=0.0)
        engine.generate(Prompt(text="Once"), sampling, events)
        with pytest.raises(CoreError, match="cache_size") as caught:
            events.all()
        assert caught.value.kind is Kind.UNAVAILABLE

        after = Events()
        engine.generate(Prompt(text="Once"), Sampling(max_tokens=4, temperature=0.0), after)
        assert after.all()[-1].finish == "length"
    finally:
        engine.close()


def test_a_prefix_of_an_earlier_prompt_gives_the_same_text(folder):
    from backend_openvino_genai.engine import GenAiEngine
    from backend_openvino_genai.settings import Settings

    engine = GenAiEngine(
        folder, Settings(context=512, threads=1, prefix_caching=True, cache_blocks=64)
    )
    try:
        text = "A cat, a dog, a bird. " * 12 + "The capital of France is"
        texts = []
        for _ in range(2):
            events = Events()
            engine.generate(Prompt(text=text), Sampling(max_tokens=8, temperature=0.0), events)
            texts.append(whole(events.all()))
        assert texts[0] == texts[1]
    finally:
        engine.close()


def test_an_unknown_device_is_refused_with_those_of_the_machine(folder):
    from backend_openvino_genai.engine import GenAiEngine
    from backend_openvino_genai.settings import Settings

    with pytest.raises(CoreError, match=r"'device' is 'TPU', this machine has .*CPU"):
        GenAiEngine(folder, Settings(context=512, device="TPU"))


def test_a_file_that_is_no_model_is_refused_with_the_reason(tmp_path):
    pytest.importorskip("openvino_genai")
    from backend_openvino_genai.engine import GenAiEngine
    from backend_openvino_genai.settings import Settings

    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(CoreError, match=r"OpenVINO GenAI cannot load '.*model\.gguf'"):
        GenAiEngine(tmp_path / "model.gguf", Settings(context=512))


_AT_ONCE = """
import os, sys, threading
from pathlib import Path

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from backend_openvino_genai.engine import GenAiEngine
from backend_openvino_genai.settings import Settings
from core_generate import Prompt, Sampling

engine = GenAiEngine(Path(sys.argv[1]), Settings(context=512, threads=1))
ended = threading.Semaphore(0)
for number in range(16):
    prompt = Prompt(text=f"{number} plus one is")
    emit = lambda event: getattr(event, "finish", "failed") and ended.release()
    engine.generate(prompt, Sampling(max_tokens=2, temperature=0.0), emit)
print(all(ended.acquire(timeout=30) for _ in range(16)), flush=True)
os._exit(0)
"""


def test_the_first_requests_may_come_at_once(smollm2):
    for _ in range(2):  # a new process has one chance to stand still, which it takes in most cases
        ran = subprocess.run(
            [sys.executable, "-c", _AT_ONCE, smollm2], capture_output=True, text=True, timeout=60
        )
        assert ran.stdout.endswith("True\n"), ran.stderr
