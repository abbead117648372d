"""The text of a generation's first tokens, with the real tokenizer: outputs come from the test."""

from types import SimpleNamespace

import pytest
from core_generate import Sampling
from core_testing.engines.events import Events


class Given:
    """A pipeline whose only generation has these tokens, and the GenerationHandle of it."""

    def __init__(self, tokenizer, tokens, finish):
        self.tokenizer = tokenizer
        self._left = [SimpleNamespace(generated_ids=[*tokens], finish_reason=finish)]

    def add(self, prompt, config):
        return self

    def can_read(self):
        return bool(self._left)

    def read(self):
        return {0: self._left.pop()}

    def get_status(self):
        from openvino_genai import GenerationStatus

        return GenerationStatus.RUNNING


@pytest.fixture
def tokenizer(engine):
    """Return a tokenizer that knows no pieces yet, and counts its calls of `text` in `calls`."""
    from backend_openvino_genai.tokenizer import ModelTokenizer

    class Counted(ModelTokenizer):
        calls = 0

        def text(self, tokens, special=False):
            self.calls += 1
            return super().text(tokens, special)

    return Counted(engine._pipeline.tokenizer.raw)


@pytest.fixture
def made():
    """Return a function that makes a generation of tokens behind a prompt, and returns it and its Events."""
    from backend_openvino_genai.generation import GenAiGeneration
    from openvino_genai import GenerationFinishReason

    def made(tokenizer, prompt, tokens, goes_on=False):
        finish = GenerationFinishReason.NONE if goes_on else GenerationFinishReason.LENGTH
        events = Events()
        pipeline = Given(tokenizer, tokens, finish)
        generation = GenAiGeneration(pipeline, Sampling(), events)
        generation.prepare(prompt, None)
        return generation, events

    return made


def test_a_character_that_the_prompt_begins_comes_whole(tokenizer, made):
    *prompt, last = tokenizer.tokens("a 🜁", special=False)
    assert "🜁" not in tokenizer.text(prompt)
    generation, events = made(tokenizer, prompt, [last])

    generation.begin()
    generation.read()

    assert events.next().text == "🜁"


def test_a_known_token_behind_a_text_needs_no_call_of_the_tokenizer(tokenizer, made):
    prompt = tokenizer.tokens("The capital of France is")
    (token,) = tokenizer.tokens(" the", special=False)
    first, taught = made(tokenizer, prompt, [token])
    first.begin()
    first.read()
    second, events = made(tokenizer, prompt, [token], goes_on=True)
    tokenizer.calls = 0

    second.begin()
    second.read()

    assert tokenizer.calls == 0
    assert taught.next().text == events.next().text == " the"
