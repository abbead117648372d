"""The messages of tfserving.proto, in core's private descriptor pool."""

from __future__ import annotations

from importlib import resources
from typing import Any

from core.config import proto

proto.add(resources.files(__package__).joinpath("tfserving.binpb").read_bytes())
_found = proto.module_names("tfserving.proto")


def __getattr__(name: str) -> Any:
    """Return the class of a message. Raises AttributeError for an unknown name."""
    try:
        return _found[name]
    except KeyError:
        raise AttributeError(name) from None
