"""FrontendConformance: all groups of tests of a frontend together."""

from __future__ import annotations

from core.testing.frontends.describing import FrontendDescriptions
from core.testing.frontends.inference import FrontendInference
from core.testing.frontends.leaving import FrontendEnds
from core.testing.frontends.streaming import FrontendStreams


class FrontendConformance(FrontendDescriptions, FrontendInference, FrontendStreams, FrontendEnds):
    """The contract. Subclass it in a test module; core.testing.frontends.kit describes the attributes."""
