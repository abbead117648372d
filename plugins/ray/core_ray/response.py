"""Response: the outputs of a model, as a call by handle returns them to another process."""

from __future__ import annotations

from typing import Any

import numpy as np


class Response(dict[str, np.ndarray]):
    """One response: name of an output → array. Ray sends its arrays without a copy of its own making.

    model_name, model_version   what has answered
    id                          of the request
    parameters                  of the response: name → bool | int | float | str
    BYTES are arrays of `bytes` objects, BF16 are bit patterns as uint16. Arrays that come from another
    process are read-only.
    """

    model_name: str
    model_version: int
    id: str
    parameters: dict[str, bool | int | float | str]

    @classmethod
    def of(cls, found: Any) -> Response:
        """Return what a core.Server has answered, as an object that can be pickled."""
        made = cls(found)
        made.model_name, made.model_version = found.model_name, found.model_version
        made.id, made.parameters = found.id, dict(found.parameters)
        return made
