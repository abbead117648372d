"""Rules for the model as a whole: name, platform and backend, agents, cache, metrics."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from core.config.autofill import ENSEMBLE
from core.config.formats import Formats
from core.config.messages import ModelConfig
from core.config.validation.refusal import refused
from core.errors import invalid

_LABEL = re.compile(r"[A-Za-z0-9_]+")


def check_general(config: ModelConfig, formats: Formats) -> None:
    """Raise CoreError(INVALID) without name, for a wrong platform, unnamed agent or max_batch_size < 0."""
    if not config.name:
        raise invalid("model configuration must specify 'name'")
    _check_platform(config, formats)
    _check_agents(config)
    if config.max_batch_size < 0:
        text = "'max_batch_size' must be non-negative value"
        raise refused(config, text, f"max_batch_size is {config.max_batch_size}")


def _check_platform(config: ModelConfig, formats: Formats) -> None:
    """Raise CoreError(INVALID) unless a backend with a platform word of it, or only "ensemble", is set."""
    platform, backend = config.platform, config.backend
    if not backend and not platform:
        text = f"must specify 'platform' or 'backend' for '{config.name}'"
        raise invalid(f"{text}: the files of the model do not tell it")
    if not backend and platform != ENSEMBLE:
        platforms = dict.fromkeys(each.platform for each in formats if each.platform)
        known = ", ".join([*platforms, ENSEMBLE])
        raise refused(
            config,
            f"unexpected platform type '{platform}'",
            f"platform; there are {known}, and 'backend' names all others{formats.advice([platform])}",
        )
    if backend and platform == ENSEMBLE:
        raise invalid(
            f"Ensemble model '{config.name}' must have platform type '{platform}' and empty "
            f"backend type: backend is '{backend}'"
        )
    words = formats.words_of(backend)
    if words and platform not in words:
        raise refused(
            config,
            f"unexpected 'platform' and 'backend' pair, got:{platform}, {backend}",
            f"with backend '{backend}', platform is {' or '.join(words)}, or left out",
        )


def _check_agents(config: ModelConfig) -> None:
    for index, agent in enumerate(config.model_repository_agents.agents):
        if not agent.name:
            raise refused(
                config,
                "a repository agent must have a name",
                f"model_repository_agents.agents[{index}].name",
            )


def check_response_cache(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for a response cache with sequence batching or of a decoupled model."""
    if not config.response_cache.enable:
        return
    if config.HasField("sequence_batching"):
        raise invalid(
            f"Response Cache does not currently support model {config.name} with sequence batching "
            "scheduler. Please disable the response cache: response_cache.enable is true"
        )
    if config.model_transaction_policy.decoupled:
        raise invalid(
            f"Response Cache does not currently support model {config.name} with 'decoupled' "
            "transaction policy. Please disable the response cache: response_cache.enable is true"
        )


def check_metrics(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) unless each control has a family and ascending buckets, and tags are valid."""
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
