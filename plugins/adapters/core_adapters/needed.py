"""Import a library that a model needs."""

from __future__ import annotations

import importlib
from typing import Any

from backend_python.api.errors import TritonModelException


def needed(module: str, distribution: str, why: str) -> Any:
    """Import and return a module. If it is missing, raise TritonModelException with the package to install.

    why   the purpose of the import for the error text, such as "reading 'model.skops'"
    If the module is there and imports another one that is missing, raise ModuleNotFoundError.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not (module + ".").startswith(error.name + "."):
            raise
        raise TritonModelException(
            f"{why} needs the package '{module.partition('.')[0]}', which is not installed where the "
            f"model runs; try: pip install {distribution}"
        ) from None
