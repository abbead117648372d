"""Where ensembles will get their chain: steps through other models in place of instances."""

from __future__ import annotations

from core.config import ModelConfig, Signature
from core.errors import unsupported
from core.lifecycle.host import Host
from core.pipeline import Chain


async def open_ensemble(config: ModelConfig, signature: Signature, host: Host) -> Chain:
    """The chain of an ensemble. Raises CoreError(UNSUPPORTED): no room runs the steps of one."""
    raise unsupported(
        f"model '{config.name}' is an ensemble of "
        f"{', '.join(step.model_name for step in config.ensemble_scheduling.step)}; "
        "this server runs no ensembles, call the models one by one"
    )
