"""The contract of all backends, for each place where a model may run."""

from backend_python.conformance import TestProcess as TestProcess
from backend_python.conformance import TestShared as TestShared
from backend_python.conformance import TestThread as TestThread
