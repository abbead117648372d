"""Test backends in native code, with the parameters of those that Triton's own tests use.

identity   INPUT<i> leaves as OUTPUT<i>
repeat     one answer for each element of IN, with delays (decoupled)
square     as many answers as IN says (decoupled)

What they compute is in C++ (*.hpp), behind core's native interface; configurations are checked here.
"""

from backend_testing.identity import identity
from backend_testing.repeat import repeat
from backend_testing.square import square

__all__ = ["identity", "repeat", "square"]
