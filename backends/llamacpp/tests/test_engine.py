"""LlamaEngine with the real, small model."""

import json
import math
import re
import sys
import threading

import numpy as np
import pytest
from core_generate import Prompt, PromptTooLong, Sampling, Structure, StructureRefused
from core_testing.engines.events import Events
from core_testing.patience import PATIENCE_S

from core.errors import CoreError, Kind


def whole(events):
    return "".join(event.text for event in events)


def test_a_greedy_answer_is_counted_and_ends_with_its_reason(generated):
    events = generated(max_tokens=8)

    assert "Paris" in whole(events)
    assert events[-1].finish == "length"
    assert sum(event.count for event in events) == 8
    assert events[-1].prompt_tokens == 5
    assert [event.finish for event in events[:-1]] == [""] * (len(events) - 1)


def test_the_end_of_the_text_ends_the_generation(generated, engine):
    text = "<|im_start|>user\nSay only: yes<|im_end|>\n<|im_start|>assistant\n"
    events = generated(text, max_tokens=200)

    assert events[-1].finish == "stop"
    assert "<|im_end|>" not in whole(events)


def test_tokens_and_their_text_give_the_same_answer(generated, engine):
    tokens = engine.tokenize("The capital of France is")

    assert engine.detokenize(tokens) == "The capital of France is"
    assert whole(generated(tokens=tokens)) == whole(generated())


def test_special_tokens_of_a_text_are_one_token(engine):
    assert len(engine.tokenize("<|im_end|>")) == 1


@pytest.mark.parametrize("stop", ["Paris", "is", " Par", "a"])
def test_the_text_ends_before_a_stop_string(generated, stop):
    without = whole(generated())
    events = generated(stop=(stop,))

    assert whole(events) == without.partition(stop)[0]
    assert events[-1].finish == ("stop" if stop in without else "length")


def test_text_that_only_begins_like_a_stop_string_is_not_lost_at_the_end(generated):
    events = generated(max_tokens=6)
    text = whole(events)

    assert whole(generated(max_tokens=6, stop=(text[-1] + "§",))) == text


@pytest.mark.parametrize("stop", [(), ("Paris",)])
def test_tokens_of_a_prompt_that_a_slot_still_has_count_as_cached(generated, stop):
    text = f"Here the capital of France is called with {len(stop)} stop strings"
    first = generated(text)
    again = generated(text, stop=stop)

    assert first[-1].cached_tokens < first[-1].prompt_tokens - 1
    assert again[-1].cached_tokens >= again[-1].prompt_tokens - 1


def test_logprobs_are_those_of_the_tokens(generated, engine):
    events = generated(logprobs=3)
    logprobs = [each for event in events for each in event.logprobs]

    assert len(logprobs) == 16
    assert engine.detokenize([each.token for each in logprobs]) == whole(events)
    assert all(each.logprob <= 0 and len(each.top) == 3 for each in logprobs)
    assert all(each.top[0].token == each.token for each in logprobs)  # temperature 0
    assert all(sum(math.exp(top.logprob) for top in each.top) <= 1.0001 for each in logprobs)
    assert "".join(each.text for each in logprobs) == whole(events)


def test_no_alternatives_are_reported_for_logprobs_0(generated):
    events = generated(logprobs=0)

    assert all(each.top == () for event in events for each in event.logprobs)
    assert sum(len(event.logprobs) for event in events) == 16


def test_a_seed_repeats_and_another_differs(generated):
    def text(seed):
        return whole(generated(seed=seed, temperature=1.5, max_tokens=24))

    assert text(7) == text(7)
    assert len({text(seed) for seed in (7, 8, -1, 2**64 - 1)}) > 1


def test_a_bias_forbids_a_token(generated, engine):
    (token,) = engine.tokenize(" Paris", special=False)

    assert "Paris" in whole(generated())
    assert "Paris" not in whole(generated(logit_bias={token: -100.0}, max_tokens=1))


def test_the_end_of_the_text_may_be_ignored(generated):
    text = "<|im_start|>user\nSay only: yes<|im_end|>\n<|im_start|>assistant\n"
    events = generated(text, max_tokens=100, ignore_eos=True)

    assert events[-1].finish == "length"
    assert sum(event.count for event in events) == 100


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 10},
        "age": {"type": "integer", "maximum": 99},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


def test_a_schema_is_kept(generated):
    document = json.loads(whole(generated(structure=Structure(schema=SCHEMA), max_tokens=100)))

    assert set(document) == {"name", "age"}
    assert isinstance(document["age"], int)


def test_any_json_object_is_an_object(generated):
    text = whole(
        generated("A short JSON object:", structure=Structure(schema=True), max_tokens=200)
    )

    assert text.lstrip().startswith("{")


def test_a_regular_expression_matches_the_whole_text(generated):
    events = generated(structure=Structure(regex=r"[0-9]{2}/[0-9]{2}"), max_tokens=32)

    assert re.fullmatch(r"\d\d/\d\d", whole(events))
    assert events[-1].finish == "stop"


@pytest.mark.parametrize("choices", [("yes", "no"), ('"a\\b"\n', "über"), ("x",)])
def test_one_of_the_choices_is_generated(generated, choices):
    assert whole(generated(structure=Structure(choices=choices), max_tokens=32)) in choices


def test_a_grammar_is_followed(generated):
    grammar = 'root ::= [a-c]+ "!"'

    assert re.fullmatch(
        "[a-c]+!", whole(generated(structure=Structure(grammar=grammar), logit_bias={}))
    )


@pytest.mark.parametrize(
    "structure",
    [
        Structure(grammar="root ::= ("),
        Structure(grammar="nothing"),
        Structure(grammar="root ::= " + "(" * 100_000),
        Structure(grammar="root ::= root"),
        Structure(regex="(["),
        Structure(schema={"type": "unknown"}),
        Structure(schema={"$ref": "#/nowhere"}),
    ],
    ids=lambda each: (each.grammar or each.regex or str(each.schema))[:20],
)
def test_a_structure_that_cannot_be_compiled_is_refused(generated, structure):
    with pytest.raises(StructureRefused) as refused:
        generated(structure=structure)

    assert refused.value.kind is Kind.INVALID
    assert whole(generated(max_tokens=4))  # it goes on


def test_a_prompt_that_is_too_long_is_refused_with_both_numbers(generated):
    with pytest.raises(PromptTooLong, match=r"the prompt has 600 tokens.* 512 tokens") as refused:
        generated(tokens=[100] * 600)

    assert refused.value.kind is Kind.INVALID


def test_a_generation_ends_with_the_context(generated):
    events = generated(tokens=[100] * 500, max_tokens=None, ignore_eos=True)

    assert events[-1].finish == "length"
    assert 500 + sum(event.count for event in events) <= 513


@pytest.mark.parametrize("tokens", [[10**6], [2**31 - 1]])
def test_tokens_outside_the_vocabulary_are_refused(generated, tokens):
    with pytest.raises(CoreError) as refused:
        generated(tokens=tokens)

    assert refused.value.kind is Kind.INVALID


def test_many_generations_run_at_once_and_do_not_mix(engine):
    takers = [Events() for _ in range(4)]
    alone = []
    sampling = Sampling(temperature=0.0, max_tokens=12)
    prompts = [Prompt(text=f"Count: {i}, {i + 1}, {i + 2},") for i in range(4)]
    for prompt in prompts:
        events = Events()
        engine.generate(prompt, sampling, events)
        alone.append(whole(events.all())[:4])

    for prompt, taker in zip(prompts, takers, strict=True):
        engine.generate(prompt, sampling, taker)

    assert [whole(taker.all())[:4] for taker in takers] == alone


def test_a_cancelled_generation_ends(engine):
    events, done = Events(), threading.Event()

    def emit(event):
        events(event)
        done.set()

    generation = engine.generate(
        Prompt(text="Once"), Sampling(max_tokens=500, ignore_eos=True), emit
    )
    assert done.wait(PATIENCE_S)

    generation.cancel()

    assert wait_until(lambda: engine.status().running == 0)
    while not events.is_empty():
        assert not events.next().finish


def test_a_long_prompt_can_be_cancelled_before_its_first_token(engine):
    events = Events()

    generation = engine.generate(Prompt(tokens=[100] * 500), Sampling(max_tokens=4, seed=1), events)
    generation.cancel()

    assert wait_until(lambda: engine.status().running == 0)
    assert events.is_empty()


def wait_until(condition):
    for _ in range(int(PATIENCE_S * 100)):
        if condition():
            return True
        threading.Event().wait(0.01)
    return False


def test_what_runs_is_counted(engine):
    events = Events()
    generation = engine.generate(
        Prompt(text="Once"), Sampling(max_tokens=400, ignore_eos=True), events
    )
    events.next()

    assert engine.status().running == 1
    assert 0 < engine.status().cache_use < 1
    generation.cancel()


def test_the_signal_handlers_of_the_process_stay(engine):
    import ctypes
    import signal

    found = ctypes.create_string_buffer(256)
    default = ctypes.create_string_buffer(256)
    before = signal.signal(signal.SIGUSR2, lambda *_: None)
    try:
        ctypes.CDLL(None).sigaction(signal.SIGINT, None, found)
        ctypes.CDLL(None).sigaction(signal.SIGUSR2, None, default)
    finally:
        signal.signal(signal.SIGUSR2, before)
    given = signal.getsignal(signal.SIGINT)  # ignored if a shell has started the tests with &
    expected = default.raw[:8] if callable(given) else int(given).to_bytes(8, sys.byteorder)
    assert found.raw[:8] == expected


def test_a_file_that_is_no_model_is_refused(tmp_path):
    pytest.importorskip("xllamacpp")
    from backend_llamacpp.engine import LlamaEngine
    from backend_llamacpp.settings import Settings
    from gguf_files import LLAMA, gguf

    (tmp_path / "model.gguf").write_bytes(gguf(LLAMA))

    with pytest.raises(CoreError, match=r"llama\.cpp cannot load"):
        LlamaEngine(tmp_path / "model.gguf", Settings())


def test_embeddings_have_length_1_and_know_what_is_alike(smollm2):
    from backend_llamacpp.engine import LlamaEngine
    from backend_llamacpp.settings import Settings

    engine = LlamaEngine(smollm2, Settings(task="embed", pooling="mean", context=128, threads=1))
    try:
        texts = ["The cat sleeps.", "A cat is sleeping.", "Stocks fell by four percent."]
        found, tokens = engine.embed([Prompt(text=each) for each in texts])
        assert found.shape == (3, 576) and found.dtype == np.float32
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-3)
        assert found[0] @ found[1] > found[0] @ found[2]
        assert tokens == [len(engine.tokenize(each)) for each in texts]
        with pytest.raises(CoreError, match=r"the text has 200 tokens.*128 tokens"):
            engine.embed([Prompt(tokens=[100] * 200)])
    finally:
        engine.close()
