"""StopStrings: ends a text before the first stop string, also one that lies across the borders of tokens."""

from __future__ import annotations

from collections.abc import Iterable


class StopStrings:
    """Finds the first stop string in a text that arrives in pieces. Not thread-safe.

    The first is the one that ends first; of several that end at one character, the longest. The result does
    not depend on the pieces. The work is proportional to the text and to the number of strings.

    found   the stop string that has ended the text; "" for none
    """

    def __init__(self, strings: Iterable[str]):
        self.found = ""
        self._searches = [_Search(each) for each in strings if each]
        self._begins = frozenset(each.string[0] for each in self._searches)
        self._held = ""

    def feed(self, text: str) -> str:
        """Add a piece. Return the characters before the stop string, if the piece completes one.

        Else return the characters, held ones first, that cannot belong to a stop string. Return "" if a stop
        string was found before.
        """
        if self.found or not text:
            return ""
        if not self._held and self._begins.isdisjoint(text):
            return text
        whole = self._held + text
        longest = 0
        for i, character in enumerate(text, len(self._held) + 1):
            longest = 0
            for search in self._searches:
                length = search.step(character)
                if length > longest:
                    longest = length
                if length == len(search.string) and length > len(self.found):
                    self.found = search.string
            if self.found:
                self._held = ""
                return whole[: i - len(self.found)]
        border = len(whole) - longest
        self._held = whole[border:]
        return whole[:border]

    def end(self) -> str:
        """End the text. Return what was held back as the possible begin of a stop string; "" for nothing."""
        held, self._held = self._held, ""
        return held


class _Search:
    """Search for one string, character by character (Knuth, Morris and Pratt)."""

    def __init__(self, string: str):
        self.string = string
        self._length = 0  # of the longest begin of the string that ends the text
        # For each begin of the string: length of its longest other begin that also ends it.
        self._shorter = [0] * len(string)
        length = 0
        for i in range(1, len(string)):
            while length and string[i] != string[length]:
                length = self._shorter[length - 1]
            length += string[i] == string[length]
            self._shorter[i] = length

    def step(self, character: str) -> int:
        """Add a character. Return the length of the longest prefix of the string with which the text ends.

        After the whole string, the search begins anew.
        """
        string, length = self.string, self._length
        while length and string[length] != character:
            length = self._shorter[length - 1]
        length += string[length] == character
        # Nothing follows a string that is found.
        self._length = length if length < len(string) else 0
        return length
