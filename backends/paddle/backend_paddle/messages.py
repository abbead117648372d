"""The messages of program.proto, in core's private descriptor pool."""

from __future__ import annotations

from importlib import resources
from typing import Any

from core.config import proto

proto.add(resources.files(__package__).joinpath("program.binpb").read_bytes())
_messages: Any = proto.module_names("program.proto")
ProgramDesc: Any = _messages["ProgramDesc"]
TensorDesc: Any = _messages["TensorDesc"]
