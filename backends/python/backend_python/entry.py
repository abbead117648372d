"""The entry point `python` of core.backends."""

import core
from backend_python.server.complete import complete
from backend_python.server.instance import PythonInstance
from backend_python.server.model import PythonModel

backend = core.Backend(model=PythonModel, instance=PythonInstance, complete=complete)
