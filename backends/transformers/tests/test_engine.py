"""TextEngine with a tiny model: where texts end, how tokens are chosen, structures, refusals."""

import json
import math
import re
import threading
import warnings

import pytest
from core_generate import Prompt, PromptTooLong, Sampling, Structure, StructureRefused
from core_testing.engines.events import Events

from core.errors import CoreError, Kind


def whole(events):
    return "".join(event.text for event in events)


def tokens_of(events):
    return [token for event in events for token in event.tokens]


def test_a_greedy_answer_is_counted_and_ends_with_its_reason(generated, engine):
    events = generated(max_tokens=8)

    assert len(tokens_of(events)) == sum(event.count for event in events) == 8
    assert events[-1].finish == "length"
    assert events[-1].prompt_tokens == len(engine.tokenize("Once upon a time"))
    assert engine.detokenize(tokens_of(events)) == whole(events)


def test_a_token_that_ends_the_text_is_no_part_of_it(generated, engine):
    end = 2
    events = generated(logit_bias={end: 100.0})

    assert whole(events) == ""
    assert tokens_of(events) == [end]
    assert events[-1].finish == "stop"


def test_min_tokens_come_before_the_end(generated):
    events = generated(logit_bias={2: 100.0}, min_tokens=5)

    assert len(tokens_of(events)) == 6
    assert tokens_of(events)[-1] == 2


def test_the_end_of_the_text_may_be_ignored(generated):
    events = generated(logit_bias={2: 100.0}, ignore_eos=True)

    assert tokens_of(events) == [2] * 16
    assert (whole(events), events[-1].finish) == ("", "length")


def test_a_stop_token_ends_the_text(generated):
    first = tokens_of(generated())
    stop = next(each for each in first if each != first[0])

    events = generated(stop_tokens=(stop,))

    assert tokens_of(events) == first[: first.index(stop) + 1]
    assert events[-1].finish == "stop"


def test_a_penalty_for_repetition_counts_the_prompt(generated, engine):
    (token,) = engine.tokenize("a", special=False)
    bias = {token: 100.0}

    assert tokens_of(generated("a", logit_bias=bias, max_tokens=1)) == [token]
    plain = generated("a", max_tokens=40)
    changed = generated("a", max_tokens=40, repetition_penalty=5.0)
    assert len(set(tokens_of(changed))) > len(set(tokens_of(plain)))
    assert token not in tokens_of(changed)[:5]


def test_penalties_for_frequency_and_presence_count_new_tokens_only(generated, engine):
    (token,) = engine.tokenize("a", special=False)
    bias = {token: 50.0}

    assert tokens_of(generated("a", logit_bias=bias, max_tokens=4)) == [token] * 4
    found = tokens_of(
        generated("a", logit_bias={token: 1.0}, frequency_penalty=2.0, presence_penalty=2.0)
    )
    assert found.count(token) < 16


@pytest.mark.parametrize("limit", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}])
def test_a_limit_that_leaves_one_token_takes_the_most_likely(generated, limit):
    assert tokens_of(generated(temperature=1.0, **limit)) == tokens_of(generated())


def test_drawn_tokens_follow_their_probabilities(engine):
    """Draws from the first token's distribution, whose probabilities the engine reports itself."""
    events = Events()
    engine.generate(
        Prompt("a"), Sampling(max_tokens=1, temperature=0.0, logprobs=20, top_k=2), events
    )
    first, second = events.all()[0].logprobs[0].top[:2]
    share = 1 / (1 + math.exp(second.logprob - first.logprob))
    count = 0
    for seed in range(200):
        events = Events()
        engine.generate(
            Prompt("a"), Sampling(max_tokens=1, top_k=2, temperature=1.0, seed=seed), events
        )
        (token,) = tokens_of(events.all())
        assert token in (first.token, second.token)
        count += token == first.token

    assert abs(count / 200 - share) < 4 * math.sqrt(share * (1 - share) / 200)


def test_a_seed_repeats_and_another_differs(generated):
    def text(seed):
        return whole(generated(seed=seed, temperature=2.0, max_tokens=24))

    assert text(7) == text(7)
    assert len({text(seed) for seed in (7, 8, -1, 2**64 - 1)}) > 1


def test_the_texts_of_logprobs_make_the_text(generated):
    events = generated(logprobs=3)
    logprobs = [each for event in events for each in event.logprobs]

    assert [each.token for each in logprobs] == tokens_of(events)
    assert all(each.top[0].token == each.token for each in logprobs)  # temperature 0
    if "\ufffd" not in whole(events):
        assert "".join(each.text for each in logprobs) == whole(events)


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "age": {"type": "integer", "maximum": 99},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


def test_a_schema_is_kept(generated):
    document = json.loads(whole(generated(structure=Structure(schema=SCHEMA), max_tokens=200)))

    assert set(document) == {"name", "age"}


def test_a_regular_expression_matches_the_whole_text(generated):
    events = generated(
        structure=Structure(regex=r"[0-9]{2}/[0-9]{2}"), temperature=1.0, ignore_eos=True
    )

    assert re.fullmatch(r"\d\d/\d\d", whole(events))
    assert events[-1].finish == "stop"


@pytest.mark.parametrize("choices", [("yes", "no"), ('"a\\b"\n', "über"), ("x",)])
def test_one_of_the_choices_is_generated(generated, choices):
    assert whole(generated(structure=Structure(choices=choices), max_tokens=32)) in choices


@pytest.mark.parametrize("grammar", ['root ::= [a-c]{3} "!"', 'start: /[a-c]{3}/ "!"'])
def test_a_grammar_is_followed(generated, grammar):
    assert re.fullmatch("[a-c]{3}!", whole(generated(structure=Structure(grammar=grammar))))


def test_min_tokens_do_not_lengthen_a_structure_that_is_complete(generated):
    assert whole(generated(structure=Structure(choices=("x",)), min_tokens=10)) == "x"


@pytest.mark.parametrize(
    ("structure", "field"),
    [
        (Structure(grammar="start: ("), "grammar"),
        (Structure(grammar="root ::= ("), "grammar"),
        (Structure(regex="("), "regex"),
        (Structure(schema={"type": "nonsense"}), "schema"),
    ],
)
def test_a_structure_that_does_not_compile_is_refused_with_its_field(generated, structure, field):
    with pytest.raises(StructureRefused, match=f"'{field}' cannot be compiled: .") as caught:
        generated(structure=structure)

    assert caught.value.kind is Kind.INVALID


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(engine):
    with pytest.raises(PromptTooLong, match=r"the prompt has 300 tokens, .* is 256 tokens"):
        engine.generate(Prompt(tokens=[5] * 300), Sampling(), Events())


@pytest.mark.parametrize(
    ("prompt", "sampling", "field"),
    [
        ({"tokens": [320]}, {}, "prompt_token_ids"),
        ({"text": "a"}, {"logit_bias": {9999: 1.0}}, "logit_bias"),
        ({"text": "a"}, {"stop_tokens": (9999,)}, "stop_token_ids"),
    ],
)
def test_tokens_outside_the_vocabulary_are_refused(engine, prompt, sampling, field):
    with pytest.raises(CoreError, match=f"'{field}' has the token .*, the vocabulary has 0 to 319"):
        engine.generate(Prompt(**prompt), Sampling(**sampling), Events())


def test_the_first_token_of_a_text_is_not_doubled(engine):
    assert engine.tokenize("<s>a") == [1, *engine.tokenize("a", special=False)]
    assert engine.tokenize("<|im_end|>", special=False) == [4]


def test_a_long_prompt_does_not_hold_up_a_running_generation(engine):
    running = Events()
    engine.generate(Prompt("a"), Sampling(max_tokens=40, temperature=0.0, ignore_eos=True), running)
    running.next()
    other = Events()
    engine.generate(Prompt(tokens=[5] * 200), Sampling(max_tokens=1, temperature=0.0), other)

    other.next()

    assert len(running.all()) > 1  # 13 steps ran while the prompt was computed, not all 39


def test_a_cancelled_prompt_is_computed_no_further(engine):
    events = [Events() for _ in range(8)]
    begun = [
        engine.generate(Prompt(tokens=[5] * 200), Sampling(max_tokens=5), each) for each in events
    ]
    for each in begun[1:]:
        each.cancel()

    events[0].all()

    assert all(each.is_empty() for each in events[1:])
    assert engine.status().waiting == engine.status().running == 0


def test_status_counts_generations_and_the_cache(engine):
    assert engine.status().cache_use == 0
    events = Events()
    generation = engine.generate(Prompt("a"), Sampling(max_tokens=200, ignore_eos=True), events)
    events.next()
    events.next()

    status = engine.status()

    assert status.running == 1
    assert 0 < status.cache_use < 0.2
    generation.cancel()


def test_threads_start_generations_at_once(engine):
    events = [Events() for _ in range(12)]

    def start(each):
        engine.generate(Prompt("Once"), Sampling(max_tokens=12, temperature=0.0), each)

    threads = [threading.Thread(target=start, args=(each,)) for each in events]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len({whole(each.all()) for each in events}) == 1


def test_a_failed_step_ends_its_generations_and_the_engine_goes_on(tiny, loaded):
    from backend_transformers.engine import TextEngine
    from backend_transformers.settings import Settings

    model = loaded(tiny)
    engine = TextEngine(model, Settings(context=256))
    sampling = Sampling(max_tokens=200, temperature=0.0, ignore_eos=True)
    begun = [Events(), Events()]
    for each in begun:
        engine.generate(Prompt("a"), sampling, each)
    for each in begun:
        each.next()
    table, model.module.lm_head.weight = model.module.lm_head.weight, None

    for each in begun:
        with pytest.raises(CoreError, match="transformers: ") as caught:
            each.all()
        assert caught.value.kind is Kind.INTERNAL

    model.module.lm_head.weight = table
    again = Events()
    engine.generate(Prompt("a"), Sampling(max_tokens=4), again)
    assert again.all()[-1].finish
    assert engine.status().running == 0
    engine.close()


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_prompt_that_ends_within_a_character_leaves_nothing_of_it_in_the_answer(
    generated, engine, cut
):
    (letter,) = engine.tokenize("a")[-1:]
    prompt = engine.tokenize("囧" * 4 + "😀")[:-cut]

    events = generated(tokens=tuple(prompt), logit_bias={letter: 100.0}, max_tokens=3)

    assert [event.text for event in events] == ["a", "a", "a"]


def test_no_argument_of_the_model_is_deprecated(tiny, loaded):
    from backend_transformers.rows import CausalModel, new_cache

    model = CausalModel(loaded(tiny).module)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)

        model.read([5, 6], new_cache())
