"""For plugins that decide which models are loaded, and which version answers: what only core imports else."""

from core.lifecycle import ModelManager, ModelVersion
from core.lifecycle.load_slots import asked_in_a_load
from core.lifecycle.parameters import KNOWN
from core.pipeline.admit import Admission
from core.pipeline.endpoint import Handler, InFlightRequests, ModelEndpoint
from core.pipeline.endpoint_table import EndpointTable
from core.repository.names import name_of

# fmt: off
__all__ = ["KNOWN", "Admission", "EndpointTable", "Handler", "InFlightRequests", "ModelEndpoint",
           "ModelManager", "ModelVersion", "asked_in_a_load", "name_of"]
