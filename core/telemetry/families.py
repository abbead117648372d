"""The data of metrics: a family of samples under one name. Rendering is a frontend's business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

KindOfMetric = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True)
class Sample:
    """One value.

    labels   name → value, any text
    suffix   what the sample's name adds to its family's: "", "_bucket", "_sum", "_count"
    """

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


@dataclass
class Family:
    """Samples of one name. `name` is the whole name: counters get no `_total`."""

    name: str
    kind: KindOfMetric
    help: str
    samples: list[Sample] = field(default_factory=list)
