"""The messages of orca.proto, in core's private descriptor pool."""

from __future__ import annotations

from importlib import resources
from typing import Any

from core.config import proto

proto.add(resources.files(__package__).joinpath("orca.binpb").read_bytes())
_found = proto.module_names("orca.proto")

OrcaLoadReport: Any = _found["OrcaLoadReport"]
OrcaLoadReportRequest: Any = _found["OrcaLoadReportRequest"]
