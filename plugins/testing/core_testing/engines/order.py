"""Events come in order and end once; prompts, tokens and many streams at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from core_generate import Prompt

from core.errors import CoreError, Kind
from core_testing.engines.kit import EngineKit, Generating


class Order(EngineKit):
    def test_events_end_once_with_the_counts(self, generating: Generating) -> None:
        found = generating.ended()

        assert [bool(each.finish) for each in found.events] == [False] * (len(found.events) - 1) + [
            True
        ], "the last event, and no other, has a finish"
        assert found.text, "the generation has no text"
        assert found.events[-1].prompt_tokens > 0, "the last event has no prompt_tokens"
        assert 0 < found.count <= 24, (
            f"the events count {found.count} tokens, at most 24 are allowed"
        )
        if found.tokens:
            assert len(found.tokens) == found.count, "count and tokens differ"

    def test_a_text_comes_in_several_events(self, generating: Generating) -> None:
        found = generating.ended()

        assert len([each for each in found.events if each.text]) > 1

    def test_the_same_prompt_gives_the_same_text(self, generating: Generating) -> None:
        first, second = generating.ended(), generating.ended()

        assert first.text == second.text

    def test_a_prompt_of_tokens_is_continued_like_its_text(self, generating: Generating) -> None:
        generating.needs("tokens")
        tokens = generating.engine.tokenize(generating.prompt)

        found = generating.ended(prompt=Prompt(tokens=tokens))

        expected = generating.ended()
        assert found.text == expected.text
        assert found.events[-1].prompt_tokens == len(tokens)
        assert expected.events[-1].prompt_tokens == len(tokens)

    def test_a_text_is_that_of_its_tokens(self, generating: Generating) -> None:
        generating.needs("tokens")
        tokens = generating.engine.tokenize(generating.prompt, special=False)

        assert generating.engine.detokenize(tokens).strip() == generating.prompt.strip()

    def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(
        self, generating: Generating
    ) -> None:
        context = generating.model.description.context
        if not context:
            pytest.skip("the description of the model has no context")

        with pytest.raises(CoreError) as caught:
            generating.ended(prompt=Prompt(f"{generating.prompt} " * (context + 1)))

        assert caught.value.kind is Kind.INVALID
        assert str(context) in caught.value.message, caught.value.message

    def test_many_streams_do_not_mix(self, generating: Generating) -> None:
        count = min(generating.engine.most, self.most)
        prompts = [Prompt(f"{generating.prompt} {'very ' * i}") for i in range(count)]
        alone = [generating.ended(prompt=each).text for each in prompts] if self.exact else []

        begun = [generating.begin(prompt=each)[0] for each in prompts]

        found = [each.wait() for each in begun]
        assert all(0 < each.count <= 24 for each in found)
        _same([each.text for each in found], alone)


def _same(found: Sequence[str], alone: Sequence[str]) -> None:
    for i, (text, expected) in enumerate(zip(found, alone, strict=False)):
        assert text == expected, f"stream {i} of {len(found)} gave {text!r}, alone {expected!r}"
