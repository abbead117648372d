"""The contract of backends, tested with each kind of file."""

from backend_pytorch.conformance import TestExported as TestExported
from backend_pytorch.conformance import TestModuleInPython as TestModuleInPython
from backend_pytorch.conformance import TestTorchScript as TestTorchScript
