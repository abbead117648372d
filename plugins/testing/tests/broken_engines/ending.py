"""Mistakes at the end of a text."""

from dataclasses import replace

from core_generate import StopStrings

from broken_engines.contract import Changed, caught_by
from core.errors import internal


@caught_by("test_max_tokens_end_a_generation")
class TestOneMore(Changed):
    def sampling(self, sampling):
        return replace(sampling, max_tokens=sampling.max_tokens + 1)


@caught_by("test_a_text_ends_before_a_stop_string", "test_no_text_is_taken_back")
class TestNeverStops(Changed):
    def sampling(self, sampling):
        return replace(sampling, stop=())


@caught_by("test_of_several_stop_strings_the_first_ends_the_text")
class TestFirstInTheList(Changed):
    def sampling(self, sampling):
        return replace(sampling, stop=sampling.stop[:1])


@caught_by("test_a_text_is_whole_if_only_the_begin_of_a_stop_string_comes")
class TestKeepsWhatItHolds(Changed):
    def generate(self, prompt, sampling, emit):
        stops = StopStrings(sampling.stop)
        return super().generate(
            prompt,
            replace(sampling, stop=()),
            lambda event: emit(event._replace(text=stops.feed(event.text))),
        )


@caught_by("test_a_stop_token_ends_a_generation")
class TestNoStopTokens(Changed):
    def sampling(self, sampling):
        return replace(sampling, stop_tokens=())


@caught_by("test_min_tokens_come_before_a_stop_token")
class TestNoMinTokens(Changed):
    def sampling(self, sampling):
        return replace(sampling, min_tokens=0)


@caught_by("test_a_context_that_is_full_ends_the_text")
class TestFailsWhenFull(Changed):
    def emit(self, event, emit):
        emit(internal("the context is full") if event.finish == "length" else event)
