"""The messages of saved_model.proto, in core's private descriptor pool."""

from __future__ import annotations

from importlib import resources
from typing import Any

from core.config import proto

proto.add(resources.files(__package__).joinpath("saved_model.binpb").read_bytes())
SavedModel: Any = proto.module_names("saved_model.proto")["SavedModel"]
