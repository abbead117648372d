"""Functions as models: what Server.bind makes of a function.

function, specs ─► BoundFunction ─► FunctionRepository ─► lifecycle ─► FunctionModel ─► instances
"""

from frontends.in_process.functions.backend import backends_of
from frontends.in_process.functions.binding import BoundFunction, FunctionSettings, bound_function
from frontends.in_process.functions.repository import FunctionRepository
from frontends.in_process.functions.specs import Spec, Specs

__all__ = [
    "BoundFunction",
    "FunctionRepository",
    "FunctionSettings",
    "Spec",
    "Specs",
    "backends_of",
    "bound_function",
]
