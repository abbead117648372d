"""letters: a language model that costs nothing, for tests and benchmarks.

It continues a text with the letters of the alphabet, or with a text of its configuration. Its tokens are
bytes. What it can do, it does exactly: seeds, logprobs, penalties, stop strings, structure, many streams.
"""

from backend_testing.letters.engine import Letters
from backend_testing.letters.model import LettersModel, letters

__all__ = ["Letters", "LettersModel", "letters"]
