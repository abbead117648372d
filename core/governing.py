"""For plugins that decide which models are loaded, which version answers, and in which order the steps of an
ensemble run: names that otherwise only core imports."""

from core.lifecycle import ModelManager, ModelVersion
from core.lifecycle.ensemble import Arrangement
from core.lifecycle.host import ServedModels
from core.lifecycle.load_slots import asked_in_a_load
from core.lifecycle.parameters import KNOWN
from core.pipeline import ChainServices
from core.pipeline.admit import Admission
from core.pipeline.endpoint import Handler, InFlightRequests, ModelEndpoint
from core.pipeline.endpoint_table import EndpointTable
from core.pipeline.ensemble import Step
from core.pipeline.ensemble.devices import outputs_asked
from core.pipeline.ensemble.plan import EnsemblePlan, Infer
from core.pipeline.ensemble.run import Run, of_rank
from core.repository.names import name_of

# fmt: off
__all__ = ["KNOWN", "Admission", "Arrangement", "ChainServices", "EndpointTable", "EnsemblePlan", "Handler",
           "InFlightRequests", "Infer", "ModelEndpoint", "ModelManager", "ModelVersion", "Run",
           "ServedModels", "Step", "asked_in_a_load", "name_of", "of_rank", "outputs_asked"]
