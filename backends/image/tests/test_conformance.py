"""The contract of every backend."""

from backend_image.conformance import TestImage as TestImage
