"""The messages of scaler.proto, in core's private descriptor pool."""

from __future__ import annotations

from importlib import resources
from typing import Any

from core.config import proto

proto.add(resources.files(__package__).joinpath("scaler.binpb").read_bytes())
_found = proto.module_names("scaler.proto")

ScaledObjectRef: Any = _found["ScaledObjectRef"]
IsActiveResponse: Any = _found["IsActiveResponse"]
MetricSpec: Any = _found["MetricSpec"]
GetMetricSpecResponse: Any = _found["GetMetricSpecResponse"]
GetMetricsRequest: Any = _found["GetMetricsRequest"]
MetricValue: Any = _found["MetricValue"]
GetMetricsResponse: Any = _found["GetMetricsResponse"]
