"""Check the rules of a model configuration that need no file and no other model.

The reader of a file checks that it exists and has the right size. core.lifecycle.steps checks the steps of
an ensemble against their models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from core.config.formats import Formats
from core.config.messages import ModelConfig
from core.config.validation.batch_tensors import check_batch_tensors
from core.config.validation.batching import check_dynamic_batching
from core.config.validation.ensemble import check_ensemble
from core.config.validation.files import check_files
from core.config.validation.general import check_general, check_metrics, check_response_cache
from core.config.validation.instances import LEAST, check_instance_groups
from core.config.validation.sequence import check_sequence_batching
from core.config.validation.state import check_states
from core.config.validation.tensors import check_tensors
from core.config.validation.warmup import check_warmup
from core.errors import CoreError, invalid

Rule = Callable[[], None]
"""Raises CoreError(INVALID) for the first violation in one group of rules."""


def validate_source(config: ModelConfig, formats: Formats) -> None:
    """Raise CoreError(INVALID) if a configuration breaks a rule that does not depend on its backend.

    Call it before the backend is opened: an invalid backend name must not reach the search for backends,
    and no backend may open a file outside of the model's directory.
    """
    for rule in _rules_of_source(config, formats):
        rule()


def validate(
    config: ModelConfig, formats: Formats, gpus: Sequence[int] = (), least: float = LEAST
) -> None:
    """Raise CoreError(INVALID) for the first rule that a completed, normalised configuration breaks.

    formats   of the installed backends
    gpus      ids of the GPUs that instances may use
    least     compute capability that a GPU needs (--min-supported-compute-capability), for error texts
    """
    for rule in _rules(config, formats, gpus, least):
        rule()


def violations(
    config: ModelConfig, formats: Formats, gpus: Sequence[int] | None = ()
) -> Iterator[CoreError]:
    """Yield the first violation of each group of rules, in the order of `validate`.

    gpus   as for `validate`; None checks only the rules of `validate_source`
    """
    rules = _rules_of_source(config, formats) if gpus is None else _rules(config, formats, gpus)
    for rule in rules:
        try:
            rule()
        except CoreError as error:
            yield error


def _rules_of_source(config: ModelConfig, formats: Formats) -> Iterator[Rule]:
    yield partial(check_general, config, formats)
    yield partial(check_files, config)
    yield partial(check_ensemble, config)


def _rules(
    config: ModelConfig, formats: Formats, gpus: Sequence[int], least: float = LEAST
) -> Iterator[Rule]:
    yield from _rules_of_source(config, formats)
    yield partial(_check_version_policy, config)
    if config.HasField("dynamic_batching"):
        yield partial(check_dynamic_batching, config)
    if config.HasField("sequence_batching"):
        yield partial(check_sequence_batching, config)
        yield partial(check_states, config)
    yield partial(check_response_cache, config)
    yield partial(check_metrics, config)
    yield partial(check_tensors, config)
    yield partial(check_batch_tensors, config)
    if not config.HasField("ensemble_scheduling"):
        yield partial(check_instance_groups, config, gpus, least)
        yield partial(check_warmup, config)


def _check_version_policy(config: ModelConfig) -> None:
    if not config.HasField("version_policy"):  # a normalised configuration has one
        raise invalid(f"must specify 'version policy' for {config.name}")
