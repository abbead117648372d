"""Trial: loads a model without a server to find the errors of a load, then releases everything.

OfflineModel ─► [try_model, try_ensemble] ─► ModelAlone.  For `core config`. Main thread; may block
as long as a load.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from core.alone import ModelAlone
from core.backend import Backend
from core.config import ModelConfig, Signature
from core.errors import CoreError, invalid
from core.lifecycle.ensemble import fitted, signatures_of_steps
from core.lifecycle.version import ModelVersion, reason_of
from core.pipeline.ensemble import steps_of
from core.pipeline.instances.specs import instance_specs
from core.plugins import HostedBackend
from core.request import NEWEST
from core.system.host_policy import HostPolicies

Find = Callable[[str, int], Signature]


def try_model(version: ModelVersion, config: ModelConfig, backend: Backend) -> None:
    """Read a model's files and open its first instance.

    For a backend that runs its models in processes, only check the files: their code needs the server.
    Raises the errors of a load of the model.
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
    """Check that the steps of an ensemble fit their models; return its signature.

    Writes into `config` whether it is decoupled.

    find   (model, version) → the signature of a loadable model; raises CoreError for others
    Raises CoreError(INVALID) like a load, with the reason of each step that cannot be loaded.
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
