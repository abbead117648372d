"""Check the rules of a model configuration that need no file and no other model.

The reader of a file checks that it exists and has the right size. core.lifecycle.steps checks the steps of
an ensemble against their models.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.config.formats import Formats
from core.config.messages import ModelConfig
from core.config.validation.batch_tensors import check_batch_tensors
from core.config.validation.batching import check_dynamic_batching
from core.config.validation.ensemble import check_ensemble
from core.config.validation.files import check_files
from core.config.validation.general import check_general, check_metrics, check_response_cache
from core.config.validation.instances import check_instance_groups
from core.config.validation.sequence import check_sequence_batching
from core.config.validation.state import check_states
from core.config.validation.tensors import check_tensors
from core.config.validation.warmup import check_warmup
from core.errors import invalid


def validate_source(config: ModelConfig, formats: Formats) -> None:
    """Raise CoreError(INVALID) if a configuration breaks a rule that does not depend on its backend.

    Call it before the backend is opened: an invalid backend name must not reach the search for backends,
    and no backend may open a file outside of the model's directory.
    """
    check_general(config, formats)
    check_files(config)
    check_ensemble(config)


def validate(config: ModelConfig, formats: Formats, gpus: Sequence[int] = ()) -> None:
    """Raise CoreError(INVALID) for the first rule that a completed, normalised configuration breaks.

    formats   of the installed backends
    gpus      ids of the GPUs that instances may use
    """
    validate_source(config, formats)
    if not config.HasField("version_policy"):  # a normalised configuration has one
        raise invalid(f"must specify 'version policy' for {config.name}")
    if config.HasField("dynamic_batching"):
        check_dynamic_batching(config)
    if config.HasField("sequence_batching"):
        check_sequence_batching(config)
        check_states(config)
    check_response_cache(config)
    check_metrics(config)
    check_tensors(config)
    check_batch_tensors(config)
    if not config.HasField("ensemble_scheduling"):
        check_instance_groups(config, gpus)
        check_warmup(config)
