"""Test backends in native code, with the parameters of the backends in Triton's tests.

identity   copies INPUT<i> to OUTPUT<i>
repeat     sends one answer for each element of IN, with delays (decoupled)
square     sends IN answers (decoupled)

C++ code (*.hpp) behind core's native interface executes them. The Python modules check configurations.
`backend_testing.letters` is a language model without computation, in Python.
"""

from backend_testing.identity import identity
from backend_testing.repeat import repeat
from backend_testing.square import square

__all__ = ["identity", "repeat", "square"]
