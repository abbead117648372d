"""The contract that every backend keeps, wherever a model runs."""

from backend_python.conformance import TestProcess as TestProcess
from backend_python.conformance import TestShared as TestShared
from backend_python.conformance import TestThread as TestThread
