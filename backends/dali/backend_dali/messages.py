"""The messages of pipeline.proto, in core's private descriptor pool."""

from __future__ import annotations

from importlib import resources
from typing import Any

from core.config import proto

proto.add(resources.files(__package__).joinpath("pipeline.binpb").read_bytes())
Pipeline: Any = proto.module_names("pipeline.proto")["Pipeline"]
