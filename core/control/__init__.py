"""The server as frontends see it: models for requests, control for operators."""

from core.control.audit import called_by
from core.control.control import Control
from core.control.exchange import Changed, Exchange, ProcessResults
from core.control.models import Models
from core.control.operation import OPERATIONS, Area, Operation, change, here, question
from core.pipeline.endpoint import ModelEndpoint
from core.repository import ModelLocation

__all__ = [
    "OPERATIONS",
    "Area",
    "Changed",
    "Control",
    "Exchange",
    "ModelEndpoint",
    "ModelLocation",
    "Models",
    "Operation",
    "ProcessResults",
    "called_by",
    "change",
    "here",
    "question",
]
