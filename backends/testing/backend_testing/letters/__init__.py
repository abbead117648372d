"""letters: a language model without computation, for tests and benchmarks.

It continues a text with the letters of the alphabet, or with a text of its configuration. Its tokens are
bytes. It implements seeds, logprobs, penalties, stop strings, structure and many streams exactly.
"""

from backend_testing.letters.engine import Letters
from backend_testing.letters.model import LettersModel, letters

__all__ = ["Letters", "LettersModel", "letters"]
