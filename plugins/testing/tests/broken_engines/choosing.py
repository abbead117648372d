"""Mistakes in the choice of tokens."""

import itertools
from dataclasses import replace

from broken_engines.contract import Changed, caught_by


@caught_by("test_a_seed_repeats_a_text")
class TestNoSeed(Changed):
    turn = itertools.count()

    def sampling(self, sampling):
        return replace(sampling, seed=next(self.turn))


@caught_by("test_seeds_give_different_texts")
class TestOneSeed(Changed):
    def sampling(self, sampling):
        return replace(sampling, seed=1)


@caught_by("test_a_seed_repeats_a_text_among_others")
class TestOneSeedForAll(Changed):
    def sampling(self, sampling):
        return replace(sampling, seed=(sampling.seed or 0) + self.status().running)


@caught_by("test_logprobs_are_those_of_the_tokens")
class TestSomeLogprobs(Changed):
    def emit(self, event, emit):
        emit(event._replace(logprobs=()) if event.text == "g" else event)


@caught_by("test_logprobs_of_the_alternatives_sum_to_at_most_1")
class TestCertain(Changed):
    def emit(self, event, emit):
        sure = [
            each._replace(logprob=0.0, top=tuple(other._replace(logprob=0.0) for other in each.top))
            for each in event.logprobs
        ]
        emit(event._replace(logprobs=sure))


@caught_by("test_a_bias_excludes_a_token", "test_a_bias_chooses_a_token")
class TestNoBias(Changed):
    def sampling(self, sampling):
        return replace(sampling, logit_bias={})


@caught_by(
    "test_one_of_the_choices_is_generated",
    "test_a_text_is_valid_for_its_schema",
    "test_a_text_matches_its_regular_expression",
)
class TestNoStructure(Changed):
    supports = Changed.supports | {"regex"}

    def sampling(self, sampling):
        return replace(sampling, structure=None)
