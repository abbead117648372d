"""Rules for the model as a whole: name, platform and backend, versions, agents, cache."""

from __future__ import annotations

from core.config.autofill import ENSEMBLE
from core.config.formats import Formats
from core.config.messages import ModelConfig
from core.config.validation.refusal import refused
from core.errors import invalid


def check_general(config: ModelConfig, formats: Formats) -> None:
    """Check name, platform and backend, repository agents and max_batch_size."""
    if not config.name:
        raise invalid("model configuration must specify 'name'")
    _check_platform(config, formats)
    _check_agents(config)
    if config.max_batch_size < 0:
        text = "'max_batch_size' must be non-negative value"
        raise refused(config, text, f"max_batch_size is {config.max_batch_size}")


def _check_platform(config: ModelConfig, formats: Formats) -> None:
    """Check that a model other than an ensemble has a backend, and a platform word of that backend."""
    platform, backend = config.platform, config.backend
    if not backend and not platform:
        text = f"must specify 'platform' or 'backend' for '{config.name}'"
        raise invalid(f"{text}: the files of the model do not tell it")
    if not backend and platform != ENSEMBLE:
        known = ", ".join([*(each.platform for each in formats if each.platform), ENSEMBLE])
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
    """Refuse a response cache for sequence batching and for decoupled models."""
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
