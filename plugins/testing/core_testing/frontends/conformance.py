"""FrontendConformance: all groups of tests of a frontend together."""

from __future__ import annotations

from core_testing.frontends.describing import FrontendDescriptions
from core_testing.frontends.inference import FrontendInference
from core_testing.frontends.leaving import FrontendEnds
from core_testing.frontends.streaming import FrontendStreams


class FrontendConformance(FrontendDescriptions, FrontendInference, FrontendStreams, FrontendEnds):
    """The contract of a frontend. Subclass it in a test module and set `frontend`, `client` and `name`.

    core_testing.frontends.kit.FrontendKit describes all attributes.
    """
