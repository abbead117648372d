"""Trial: loads a model without a server to find the errors of a load, then releases everything.

OfflineModel ─► [try_model, try_ensemble] ─► ModelAlone.  For `core config`, `core init`, `core check --load`.
Main thread; may block as long as a load.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from core.alone import ModelAlone
from core.backend import Backend
from core.config import ModelConfig, Signature
from core.errors import CoreError, invalid, reason_of
from core.lifecycle.ensemble import fitted, signatures_of_steps
from core.lifecycle.version import ModelVersion
from core.pipeline.ensemble import steps_of
from core.pipeline.instances.specs import instance_specs
from core.plugins import HostedBackend
from core.request import NEWEST
from core.system.host_policy import HostPolicies

Find = Callable[[str, int], Signature]


def try_model(version: ModelVersion, config: ModelConfig, backend: Backend) -> None:
    """Load a model version and open its first instance, then close both. Nothing happens without instances.

    With a HostedBackend, which runs its models in child processes, only the model's load() and unload() are
    called, which check its files: the code in the files needs a server. Raises what a load raises.
    """
    if isinstance(backend, HostedBackend):
        _look_at_files(version, config, backend)
        return
    seats = instance_specs(config, HostPolicies({}))
    if not seats:
        return
    loop = asyncio.new_event_loop()
    try:
        ModelAlone(
            config,
            {},
            name=version.name,
            version=version.version,
            path=version.path,
            directory=version.directory,
            seat=(seats[0].name, seats[0].device),
            loop=loop,
        ).close()
    finally:
        loop.close()


def _look_at_files(version: ModelVersion, config: ModelConfig, backend: Backend) -> None:
    model = backend.model()
    model.name, model.version = version.name, version.version
    model.path, model.directory = version.path, version.directory
    model.config, model.backend, model.server = config, backend, None
    backend.open()
    try:
        model.load()
        model.unload()
    finally:
        backend.close()


def try_ensemble(config: ModelConfig, signature: Signature, find: Find) -> Signature:
    """Check that the steps of an ensemble fit the models that they call; return the ensemble's signature.

    Both that signature and `config` then say whether the ensemble is decoupled, which it is if a model is.

    find   (model, version) → the signature of the model; raises an error if the model cannot be loaded
    Raises CoreError(INVALID) like a load, with the reason for each model that cannot be loaded.
    """
    reasons: dict[str, str] = {}

    def remembered(model: str, version: int = NEWEST) -> Signature:
        try:
            return find(model, version)
        except Exception as error:  # a backend may raise anything
            reasons[model] = reason_of(error)
            raise invalid(reasons[model]) from error

    steps = steps_of(config)
    try:
        models = signatures_of_steps(config.name, steps, remembered)
    except CoreError as error:
        why = "".join(f"; model '{model}': {text}" for model, text in reasons.items())
        raise invalid(f"{error.message}{why}") from error
    return fitted(config, signature, steps, models)
