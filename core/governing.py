"""For plugins that decide which models are loaded: what they need of packages that only core imports."""

from core.lifecycle import ModelManager, ModelVersion
from core.lifecycle.load_slots import asked_in_a_load
from core.lifecycle.parameters import KNOWN
from core.pipeline.admit import Admission
from core.pipeline.endpoint import Handler, InFlightRequests, ModelEndpoint
from core.repository.names import name_of

# fmt: off
__all__ = ["KNOWN", "Admission", "Handler", "InFlightRequests", "ModelEndpoint", "ModelManager",
           "ModelVersion", "asked_in_a_load", "name_of"]
