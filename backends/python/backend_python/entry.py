"""The entry point `python` of core.backends."""

import core
from backend_python.server.complete import complete
from backend_python.server.instance import PythonInstance
from backend_python.server.model import PythonModel
from backend_python.server.template import template


class PythonBackend(core.Backend):
    """Keeps the process that children are forked from as long as there may be more of them."""

    def open(self) -> None:
        template.keep()

    def close(self) -> None:
        template.drop()


backend = PythonBackend(model=PythonModel, instance=PythonInstance, complete=complete)
