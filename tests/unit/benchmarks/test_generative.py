"""The figures of a round of streams."""

from benchmarks.generative import Round


def test_nine_of_ten_streams_have_their_first_token_by_the_90th_percentile():
    first_ms = [100.0, *range(1, 10)]

    mean, median, ninth = Round(tokens_per_s=1.0, first_ms=first_ms).figures()

    assert (mean, median, ninth) == (14.5, 5.5, 9)
