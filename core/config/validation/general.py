"""Rules about the model as a whole: name, platform and backend, versions, cache, metrics."""

from __future__ import annotations

from itertools import pairwise

from core.config.autofill import ENSEMBLE, FORMATS
from core.config.messages import ModelConfig
from core.errors import invalid


def check_general(config: ModelConfig) -> None:
    if not config.name:
        raise invalid("model configuration must specify 'name'")
    _check_platform(config)
    if config.max_batch_size < 0:
        raise invalid(f"'max_batch_size' must be non-negative value for {config.name}")
    if not config.HasField("version_policy"):
        raise invalid(f"must specify 'version policy' for {config.name}")


def _check_platform(config: ModelConfig) -> None:
    """A backend is named, unless it is an ensemble; a legacy platform word goes with its backend."""
    platform, backend = config.platform, config.backend
    if not backend and platform != ENSEMBLE:
        raise invalid(f"unexpected platform type '{platform}' for {config.name}")
    if backend and platform == ENSEMBLE:
        raise invalid(
            f"Ensemble model '{config.name}' must have platform type '{platform}' and empty "
            "backend type"
        )
    words = {
        word
        for known in FORMATS
        if known.backend == backend and known.platform
        for word in (known.platform, *known.words)
    }
    if words and platform not in words:
        raise invalid(f"unexpected 'platform' and 'backend' pair, got:{platform}, {backend}")


def check_response_cache(config: ModelConfig) -> None:
    if not config.response_cache.enable:
        return
    if config.HasField("sequence_batching"):
        raise invalid(
            f"Response Cache does not currently support model {config.name} with sequence batching "
            "scheduler. Please disable the response cache."
        )
    if config.model_transaction_policy.decoupled:
        raise invalid(
            f"Response Cache does not currently support model {config.name} with 'decoupled' "
            "transaction policy. Please disable the response cache."
        )


def check_metrics(config: ModelConfig) -> None:
    for control in config.model_metrics.metric_control:
        if not control.HasField("metric_identifier"):
            raise invalid("metric control must specify 'metric_identifier'")
        if not control.metric_identifier.family:
            raise invalid("metric identifier must specify non-empty 'family'")
        if not control.HasField("histogram_options"):
            raise invalid("metric control must specify 'histogram_options'")
        buckets = control.histogram_options.buckets
        if not buckets:
            raise invalid("histogram options must specify non-empty 'buckets'")
        if not all(lower < upper for lower, upper in pairwise(buckets)):
            raise invalid(
                f"histogram options of '{control.metric_identifier.family}' must specify 'buckets' "
                f"in ascending order, got {list(buckets)}"
            )
