"""The contract of all backends."""

from backend_paddle.conformance import TestPaddle as TestPaddle
