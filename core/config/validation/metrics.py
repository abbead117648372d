"""Rules of model_metrics and metric_tags."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from core.config.messages import ModelConfig
from core.config.validation.refusal import refused

_LABEL = re.compile(r"[A-Za-z0-9_]+")


def check_metrics(config: ModelConfig) -> None:
    """Check that each control gives a family ascending buckets, and that each tag is a valid label."""
    for index, control in enumerate(config.model_metrics.metric_control):
        place = f"model_metrics.metric_control[{index}]"
        if not control.HasField("metric_identifier"):
            raise refused(config, "metric control must specify 'metric_identifier'", place)
        family = control.metric_identifier.family
        if not family:
            text = "metric identifier must specify non-empty 'family'"
            raise refused(config, text, f"{place}.metric_identifier")
        place = f"{place} ('{family}')"
        if not control.HasField("histogram_options"):
            raise refused(config, "metric control must specify 'histogram_options'", place)
        buckets = control.histogram_options.buckets
        place = f"{place}.histogram_options"
        if not buckets:
            raise refused(config, "histogram options must specify non-empty 'buckets'", place)
        if math.isnan(buckets[0]) or not all(lower < upper for lower, upper in pairwise(buckets)):
            text = "histogram options must specify 'buckets' in ascending order"
            raise refused(config, text, f"{place}.buckets is {list(buckets)}")
    for key in sorted(config.metric_tags):
        if _LABEL.fullmatch(key) is None:  # Triton's process ends at an invalid one
            text = "metric tag must consist of letters, digits and underscores"
            raise refused(config, text, f"metric_tags has the key '{key}'")
