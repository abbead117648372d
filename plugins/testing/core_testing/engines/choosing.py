"""How tokens are chosen: seeds, probabilities, biases, structure."""

from __future__ import annotations

import json
import math

from core_generate import Structure

from core_testing.engines.kit import EngineKit, Generating

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["name", "size"],
    "additionalProperties": False,
}
ROUNDING = 1e-3


class Choosing(EngineKit):
    def test_a_seed_repeats_a_text(self, generating: Generating) -> None:
        generating.needs("seed", "temperature")
        sampling = generating.greedy(temperature=1.0, seed=7)

        first, second = generating.ended(sampling), generating.ended(sampling)

        assert first.text == second.text

    def test_seeds_give_different_texts(self, generating: Generating) -> None:
        generating.needs("seed", "temperature")
        sampling = [generating.greedy(temperature=1.5, seed=seed) for seed in range(8)]

        assert len({generating.ended(each).text for each in sampling}) > 1

    def test_a_seed_repeats_a_text_among_others(self, generating: Generating) -> None:
        generating.needs("seed", "temperature")
        if not self.exact:
            return self.test_a_seed_repeats_a_text(generating)
        sampling = generating.greedy(temperature=1.0, seed=7)
        alone = generating.ended(sampling).text
        count = min(generating.engine.most, self.most)

        begun = [generating.begin(sampling)[0] for _ in range(count)]

        assert {each.wait().text for each in begun} == {alone}

    def test_logprobs_are_those_of_the_tokens(self, generating: Generating) -> None:
        generating.needs("logprobs")

        found = generating.ended(generating.greedy(logprobs=self.alternatives))

        assert len(found.logprobs) == found.count, "each token has one logprob"
        assert [each.token for each in found.logprobs] == (
            found.tokens or [each.token for each in found.logprobs]
        )
        assert found.text == generating.ended().text, "logprobs change the text"
        for each in found.logprobs:
            assert each.logprob <= 0 and not math.isnan(each.logprob)

    def test_logprobs_of_the_alternatives_sum_to_at_most_1(self, generating: Generating) -> None:
        generating.needs("logprobs")

        found = generating.ended(generating.greedy(logprobs=self.alternatives))

        for each in found.logprobs:
            values = [other.logprob for other in each.top]
            assert len(values) <= self.alternatives
            assert values == sorted(values, reverse=True), "the most likely comes first"
            assert sum(map(math.exp, values)) <= 1 + ROUNDING
            if each.top:
                assert each.logprob <= values[0] + ROUNDING
            for other in each.top:
                if other.token == each.token:
                    assert abs(other.logprob - each.logprob) <= ROUNDING

    def test_a_bias_excludes_a_token(self, generating: Generating) -> None:
        generating.needs("logit_bias", "tokens")
        first = generating.ended().tokens[0]

        found = generating.ended(generating.greedy(logit_bias={first: -100.0}))

        assert found.tokens[0] != first

    def test_a_bias_chooses_a_token(self, generating: Generating) -> None:
        generating.needs("logit_bias", "tokens")
        tokens = generating.ended().tokens
        other = next(each for each in tokens if each != tokens[0])

        found = generating.ended(generating.greedy(logit_bias={other: 100.0}, max_tokens=3))

        assert found.tokens[0] == other

    def test_one_of_the_choices_is_generated(self, generating: Generating) -> None:
        generating.needs("choices")
        choices = ("yes", "no", "perhaps")

        found = generating.ended(generating.greedy(structure=Structure(choices=choices)))

        assert found.text in choices
        assert found.finish == "stop"

    def test_a_text_is_valid_for_its_schema(self, generating: Generating) -> None:
        generating.needs("schema")
        structure = Structure(schema=SCHEMA)

        found = generating.ended(generating.greedy(structure=structure, max_tokens=200))

        document = json.loads(found.text)
        assert sorted(document) == ["name", "size"]
        assert type(document["name"]) is str and len(document["name"]) <= 8
        assert type(document["size"]) is int and 1 <= document["size"] <= 9

    def test_a_text_matches_its_regular_expression(self, generating: Generating) -> None:
        generating.needs("regex")
        structure = Structure(regex="[0-9]{4}-[0-9]{2}")

        text = generating.ended(generating.greedy(structure=structure)).text

        assert len(text) == 7 and text.replace("-", "", 1).isdigit()
