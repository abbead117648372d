"""Functions as models: what Server.bind makes of a function.

    function, specs ─► BoundFunction ─► FunctionRepository ─► lifecycle ─► FunctionModel ─► instances

specs.py        Spec: datatype and shape of one input or output
binding.py      bound_function: a function and its settings → BoundFunction, with a configuration
adapter.py      FunctionAdapter: arrays → arguments, result → outputs
repository.py   FunctionRepository: the bound functions as a model repository
backend.py      the backends, one for each kind of function
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
