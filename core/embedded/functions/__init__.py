"""Functions as models: what `Server.bind` makes of one.

    function, specs ─► Bound ─► Shelf (a repository) ─► lifecycle ─► FunctionModel ─► instances ─► function

specs.py       Spec: what one input or output is, as a person writes it
binding.py     bound: a function with all that was said of it → Bound, with a configuration
calling.py     Caller: arrays → arguments, what the function returns → outputs
shelf.py       Shelf: the repository of the bound functions
backend.py     the backends, one for each kind of function
"""

from core.embedded.functions.backend import BACKENDS, FunctionBackend, backends_of
from core.embedded.functions.binding import Bound, bound
from core.embedded.functions.shelf import Shelf
from core.embedded.functions.specs import Spec, Specs

__all__ = ["BACKENDS", "Bound", "FunctionBackend", "Shelf", "Spec", "Specs", "backends_of", "bound"]
