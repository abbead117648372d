"""BackendConformance: all groups of tests together."""

from __future__ import annotations

from core_testing.answers import Answers
from core_testing.batches import Batches
from core_testing.completion import Completion
from core_testing.concurrency import Concurrency
from core_testing.devices import Devices
from core_testing.failures import Failures
from core_testing.lifecycle import Lifecycle
from core_testing.native import Native
from core_testing.refusals import Refusals
from core_testing.state import State
from core_testing.streams import Streams


class BackendConformance(
    Answers,
    Batches,
    Completion,
    Refusals,
    Failures,
    Lifecycle,
    Concurrency,
    Streams,
    State,
    Devices,
    Native,
):
    """The contract of a backend. Subclass it, set `supports` and define the fixture `example`."""
