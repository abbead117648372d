"""Batch rules: a model or a plugin decides which requests form a batch.

Model.batch_rule, core_batch_rule ─► [rules_of] ─► batcher.  The counterpart of Triton's custom batching
(TRITONBACKEND_ModelBatchInitialize, ModelBatchIncludeRequest), called at the same points.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from core import plugins
from core.backend import BatchRule, Model, implements
from core.config import ModelConfig
from core.request import InferenceRequest

logger = logging.getLogger("core")

_LIBRARY = "batchstrategy.so"
STRATEGY_PATH = "TRITON_BATCH_STRATEGY_PATH"


def rules_of(model: Model) -> Callable[[], BatchRule] | None:
    """Return a function that returns the rule for the next batch; None if neither model nor plugin has one.

    The model's own rule takes precedence over a plugin's. Raise what `plugins.ask` raises.
    """
    if implements(model, Model, "batch_rule"):
        return _SafeRules(model.batch_rule, model.name)
    isolated = plugins.isolated_by(model.backend)
    if isolated is not None and implements(isolated.model, Model, "batch_rule"):
        logger.warning(
            "model '%s' runs in processes of its own: backend '%s' has a rule for batches, which cannot be "
            "asked there",
            model.name,
            isolated.name,
        )
    found = plugins.ask("core_batch_rule", model=model)
    return None if found is None else _SafeRules(found, model.name)


def warn_of_library(config: ModelConfig, path: Path) -> None:
    """Log a warning if a model with dynamic_batching has or names a C library of Triton's custom batching.

    core cannot load it. Reads files: call it on a worker thread.

    path   the version's directory
    """
    if not config.HasField("dynamic_batching"):
        return
    named = (
        config.parameters[STRATEGY_PATH].string_value if STRATEGY_PATH in config.parameters else ""
    )
    there = [each for each in (path / _LIBRARY, path.parent / _LIBRARY) if each.is_file()]
    if named or there:
        logger.warning(
            "model '%s': the rule for batches in '%s' is not asked, libraries of Triton's custom batching "
            "cannot be loaded; write core.Model.batch_rule, or a plugin with core_batch_rule "
            "(docs/write/write-a-backend.md)",
            config.name,
            named or there[0],
        )


class _SafeRules:
    """Rules whose exceptions are logged and only keep the request out of the batch: the scheduler goes on."""

    def __init__(self, make: Callable[[], BatchRule], model: str):
        self._make = make
        self._model = model

    def __call__(self) -> BatchRule:
        try:
            rule = self._make()
        except Exception:
            self._log()
            return _alone

        def fits(request: InferenceRequest) -> bool:
            try:
                return bool(rule(request))
            except Exception:
                self._log()
                return False

        return fits

    def _log(self) -> None:
        logger.exception("the rule for batches of model '%s' failed", self._model)


def _alone(request: InferenceRequest) -> bool:
    return False
