"""BackendConformance: all groups of tests together."""

from __future__ import annotations

from core.testing.answers import Answers
from core.testing.batches import Batches
from core.testing.concurrency import Concurrency
from core.testing.devices import Devices
from core.testing.failures import Failures
from core.testing.lifecycle import Lifecycle
from core.testing.native import Native
from core.testing.refusals import Refusals
from core.testing.state import State
from core.testing.streams import Streams


class BackendConformance(
    Answers,
    Batches,
    Refusals,
    Failures,
    Lifecycle,
    Concurrency,
    Streams,
    State,
    Devices,
    Native,
):
    """The contract. Subclass it in a test module, set `supports`, give the fixture `example`."""
