"""Where a generation ends: max_tokens, stop strings across the borders of tokens, stop tokens."""

from __future__ import annotations

from core_generate import StopStrings

from core_testing.engines.kit import EngineKit, Generating


class Ending(EngineKit):
    def test_max_tokens_end_a_generation(self, generating: Generating) -> None:
        found = generating.ended(generating.greedy(max_tokens=5))

        assert found.count <= 5
        assert found.finish == ("length" if found.count == 5 else "stop")
        assert generating.ended().text.startswith(found.text)

    def test_a_text_ends_before_a_stop_string(self, generating: Generating) -> None:
        whole = generating.ended().text
        for stop in _parts(whole):
            found = generating.ended(generating.greedy(stop=(stop,)))

            expected = whole[: whole.index(stop)]
            assert found.text == expected, f"with the stop string {stop!r} of {whole!r}"
            assert (found.finish, found.events[-1].stop) == ("stop", stop)

    def test_of_several_stop_strings_the_first_ends_the_text(self, generating: Generating) -> None:
        whole = generating.ended().text
        stops = (*_parts(whole)[::-1], "\0 never")
        first = StopStrings(stops)
        expected = first.feed(whole)

        found = generating.ended(generating.greedy(stop=stops))

        assert found.text == expected
        assert (found.finish, found.events[-1].stop) == ("stop", first.found)

    def test_a_text_is_whole_if_only_the_begin_of_a_stop_string_comes(
        self, generating: Generating
    ) -> None:
        whole = generating.ended()
        stops = tuple(f"{part}\0" for part in (*_parts(whole.text), whole.text[-3:]))

        found = generating.ended(generating.greedy(stop=stops))

        assert found.text == whole.text
        assert (found.finish, found.events[-1].stop) == (whole.finish, "")

    def test_no_text_is_taken_back(self, generating: Generating) -> None:
        whole = generating.ended().text
        stop = _parts(whole)[-1]

        events = generating.ended(generating.greedy(stop=(stop,))).events

        text = ""
        for event in events:
            text += event.text
            assert whole[: whole.index(stop)].startswith(text), f"{text!r} has more than it may"

    def test_a_stop_token_ends_a_generation(self, generating: Generating) -> None:
        generating.needs("stop_tokens")
        tokens = generating.ended().tokens
        assert tokens, "an engine with stop_tokens reports tokens"
        token = tokens[len(tokens) // 2]

        found = generating.ended(generating.greedy(stop_tokens=(token,)))

        assert found.finish == "stop"
        assert found.count == tokens.index(token) + 1

    def test_min_tokens_come_before_a_stop_token(self, generating: Generating) -> None:
        generating.needs("stop_tokens", "min_tokens")
        token = generating.ended().tokens[1]

        found = generating.ended(generating.greedy(stop_tokens=(token,), min_tokens=8))

        assert found.count >= 8


def _parts(whole: str) -> list[str]:
    """Return four parts of a text, of 1, 2, 6 and 9 characters, so that some cross borders of tokens."""
    middle = len(whole) // 2
    return [whole[middle], whole[middle : middle + 2], whole[3:9], whole[middle - 2 : middle + 7]]
