"""Mistakes of prompts and events."""

import itertools
from dataclasses import replace

from broken_engines.contract import Changed, caught_by
from core.errors import CoreError, invalid


@caught_by("test_events_end_once_with_the_counts")
class TestNoCounts(Changed):
    def emit(self, event, emit):
        emit(event._replace(prompt_tokens=0))


@caught_by("test_a_text_comes_in_several_events")
class TestAllAtOnce(Changed):
    def generate(self, prompt, sampling, emit):
        text = []

        def collect(event):
            text.append(event.text)
            if event.finish:
                emit(event._replace(text="".join(text)))

        return super().generate(prompt, sampling, collect)


@caught_by(
    "test_the_same_prompt_gives_the_same_text",
    "test_a_stream_has_the_text_of_one_response",
    "test_more_requests_than_the_engine_runs_at_once_are_answered",
    "test_a_client_that_stops_reading_holds_up_no_other_and_gets_its_whole_text",
)
class TestNeverTheSame(Changed):
    turn = itertools.count()

    def prompt(self, prompt):
        return replace(prompt, text=prompt.text + "abcdefghijk"[next(self.turn) % 11])


@caught_by("test_a_prompt_of_tokens_is_continued_like_its_text")
class TestDropsAToken(Changed):
    def prompt(self, prompt):
        return replace(prompt, tokens=prompt.tokens[:-1])


@caught_by("test_a_text_is_that_of_its_tokens")
class TestShouts(Changed):
    def detokenize(self, tokens):
        return super().detokenize(tokens).upper()


@caught_by("test_a_prompt_longer_than_the_context_is_refused_with_both_numbers")
class TestNoNumbers(Changed):
    def generate(self, prompt, sampling, emit):
        try:
            return super().generate(prompt, sampling, emit)
        except CoreError:
            raise invalid("the prompt is too long") from None


@caught_by("test_many_streams_do_not_mix")
class TestMixes(Changed):
    def prompt(self, prompt):
        return replace(prompt, text="abc") if self.status().running else prompt


@caught_by("test_a_request_gets_the_outputs_that_it_asks_for")
class TestCountsDifferently(Changed):
    turn = itertools.count(1)

    def emit(self, event, emit):
        emit(event._replace(prompt_tokens=next(self.turn)) if event.finish else event)
