"""The contract that every backend keeps."""

from backend_fil.conformance import TestFil as TestFil
