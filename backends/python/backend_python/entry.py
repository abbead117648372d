"""The entry point `python` of core.backends."""

import core
from backend_python.complete import complete
from backend_python.instance import PythonInstance
from backend_python.model import PythonModel

backend = core.Backend(model=PythonModel, instance=PythonInstance, complete=complete)
