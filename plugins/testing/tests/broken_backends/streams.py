"""Streams with wrong answers."""

import itertools

from broken_backends.contract import Stream, Streaming, caught_by


@caught_by("test_a_stream_gives_its_answers_in_order_and_ends")
class TestStreamsBackwards(Streaming):
    class inner(Stream):
        numbers = staticmethod(lambda n: range(1, n + 1))


@caught_by("test_two_streams_do_not_mix")
class TestStreamsOnce(Streaming):
    class inner(Stream):
        def open(self):
            left = itertools.chain([3, 2, 1], itertools.repeat(0))
            self.numbers = lambda n: itertools.islice(left, n)


@caught_by("test_a_cancelled_stream_ends_and_the_next_one_is_whole")
class TestGoesOnWithWhatWasCancelled(Streaming):
    class inner(Stream):
        ran = 0

        def numbers(self, n):
            self.ran += 1
            return range(n, 0, -1) if self.ran == 1 else range(1, 0, -1)
