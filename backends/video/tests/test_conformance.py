"""The contract of every backend."""

from backend_video.conformance import TestVideo as TestVideo
