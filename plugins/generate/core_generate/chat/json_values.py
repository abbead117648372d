"""Finds the end of JSON values in a text that arrives in pieces.

The scanners look at quotes and brackets only: they do not check numbers and literals.
"""

from __future__ import annotations

import re

SPACE = " \t\r\n"
_INSIDE = re.compile(r'[^"\[\]{}]+')  # between two characters that matter
_STRING = re.compile(r'[^"\\]+')
_SCALAR = re.compile(r'[^,\]}\s"\[{:]+')


class ValueScanner:
    """Finds the end of one value. Use it for one value only.

    is_scalar   whether the value is neither a string nor a list nor an object; known after the first `scan`
    done        whether the end of the value is found
    """

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._begun = False
        self.is_scalar = False
        self.done = False

    def scan(self, text: str, at: int) -> int:
        """Return the place behind the value's last character in `text`, and set `done`.

        Return the length of `text` if the value may go on in the next piece; `done` stays False then.
        at   place in `text` where the value goes on; in the first call, that of its first character, no space
        """
        if not self._begun:
            self._begun = True
            self.is_scalar = text[at] not in '"[{'
        if self.is_scalar:
            return self._scan_scalar(text, at)
        end = len(text)
        while at < end:
            at = self._string(text, at) if self._in_string else self._outside(text, at)
            if self.done:
                return at
        return end

    def _scan_scalar(self, text: str, at: int) -> int:
        match = _SCALAR.match(text, at)
        end = match.end() if match else at
        self.done = end < len(text)
        return end

    def _string(self, text: str, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        match = _STRING.match(text, at)
        if match:
            return match.end()
        if text[at] == "\\":
            self._escaped = True
        else:
            self._in_string = False
            self.done = self._depth == 0
        return at + 1

    def _outside(self, text: str, at: int) -> int:
        match = _INSIDE.match(text, at)
        if match:
            return match.end()
        each = text[at]
        if each == '"':
            self._in_string = True
        elif each in "[{":
            self._depth += 1
        else:
            self._depth -= 1
            self.done = self._depth == 0
        return at + 1


def skip_space(text: str, at: int) -> int:
    """Return the place of the first character from `at` on that is no JSON space, or the text's length."""
    end = len(text)
    while at < end and text[at] in SPACE:
        at += 1
    return at
