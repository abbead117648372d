"""Models: what requests need of the models that this process serves.

frontend, BLS ─► [Models] ─► the endpoint of a model version ─► its chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from core import config as configuration
from core.config import ModelConfig, Signature
from core.control.repository import RepositoryControl
from core.lifecycle import ModelManager, ModelVersion
from core.pipeline.endpoint import Handler, ModelEndpoint
from core.pipeline.endpoint_table import EndpointTable
from core.request import NEWEST, InferenceRequest
from core.response import Reply
from core.telemetry.tracing import Tracer


class Models:
    """The models that serve. Not thread-safe: call from the event loop only.

    `version` NEWEST stands for the newest version that serves; for requests, a plugin may choose another. A
    method with `name` and `version` raises CoreError(NOT_FOUND) for an unknown model or version, UNAVAILABLE
    if it does not serve or loads, INVALID for a name of several models. A plugin may serve in their place.

    endpoints   endpoints by model and version
    """

    def __init__(self, manager: ModelManager, tracing: Tracer, repository: RepositoryControl):
        self._manager = manager
        self._tracing = tracing
        self._repository = repository
        self.endpoints: EndpointTable = manager.endpoints

    # inference -----------------------------------------------------------------

    def infer(self, request: InferenceRequest) -> Reply:
        """Hand a request to its model; return the Reply. Raises CoreError if the request is refused at once.

        Later errors come through that Reply.
        """
        return self.ask(self.endpoint(request.model_name, request.model_version), request)

    def endpoint(self, name: str, version: int = NEWEST) -> ModelEndpoint:
        """Return the endpoint of a model version, for `ask` in the same turn of the loop."""
        return self.endpoints.find(name, version)

    def ask(self, endpoint: ModelEndpoint, request: InferenceRequest) -> Reply:
        """Hand a request to the endpoint of its model. The Tracer may trace it. Raises as `infer` does."""
        if self._tracing.on:
            return self._tracing.infer(
                request, endpoint.signature.name, endpoint.signature.version, endpoint
            )
        return endpoint.submit(request)

    def infer_step(self, request: InferenceRequest) -> Reply:
        """Hand a request that another request makes to its model; it is traced if the other one is.

        request.trace is the trace of the other request, or None. Raises what `infer` raises.
        """
        endpoint = self.endpoint(request.model_name, request.model_version)
        if request.trace is not None:
            return self._tracing.step(
                request, endpoint.signature.name, endpoint.signature.version, endpoint
            )
        return endpoint.submit(request)

    def traced(self, request: InferenceRequest, name: str, version: int, to: Handler) -> Reply:
        """Call `to` and return a Reply with its items; below `name` in `request.trace`, if that is set."""
        return (
            to(request) if request.trace is None else self._tracing.step(request, name, version, to)
        )

    # facts about a model ---------------------------------------------------------

    def signature(self, name: str, version: int = NEWEST) -> Signature:
        """Return the signature of a version: its inputs and outputs."""
        return self.endpoints.find(name, version).signature

    def takes_device(self, name: str, version: int = NEWEST) -> bool:
        """Return whether a version takes inputs that are on a device, without a copy to the host."""
        return self._manager.resolve(name, version).chain.takes_device

    def content(self, name: str, version: int = NEWEST) -> str:
        """Return a digest of what the version was loaded from; a later load may have another one."""
        return self._manager.resolve(name, version).content

    def is_ready(self, name: str, version: int = NEWEST) -> bool:
        """Return whether a version can serve, as far as this process knows."""
        return self._manager.resolve(name, version).chain.ready

    async def check(self, name: str, version: int = NEWEST) -> bool:
        """Return whether a version can serve, after its instances have been asked."""
        return await self._manager.resolve(name, version).chain.check()

    def metadata(self, name: str, version: int = NEWEST) -> dict[str, Any]:
        """Return the v2 metadata, with all ready versions for NEWEST. Shapes begin with -1 if it batches."""
        found = self._manager.resolve(name, version)
        config, signature = found.config, found.signature
        versions = self._manager.ready_versions(found.key) if version == NEWEST else []
        batch = [-1] if signature.max_batch_size else []
        return {
            "name": found.name,
            "versions": [str(number) for number in versions or [found.version]],
            "platform": config.platform or config.backend,
            "inputs": [
                {"name": spec.name, "datatype": spec.dtype.name, "shape": [*batch, *spec.dims]}
                for spec in signature.inputs.values()
            ],
            "outputs": [
                {"name": spec.name, "datatype": spec.dtype.name, "shape": [*batch, *spec.dims]}
                for spec in signature.outputs.values()
            ],
        }

    def config(self, name: str, version: int = NEWEST) -> ModelConfig:
        """Return the completed configuration. The caller must not change it."""
        return self._manager.resolve(name, version).config

    def config_json(self, name: str, version: int = NEWEST) -> dict[str, Any]:
        """Return the completed configuration as the JSON object that Triton shows."""
        return configuration.to_json(self.config(name, version))

    def knows(self, name: str) -> bool:
        """Return whether a model was requested, also by the start, and is not forgotten. It may not serve."""
        return self._manager.knows(name)

    def versions(self) -> Iterable[ModelVersion]:
        """Return every version that the index shows, sorted by name and number."""
        return self._manager.versions()

    # for models and programs that load others --------------------------------------

    async def load(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Load or reload a model for code in this process; return when it is ready.

        parameters   `config` (str) and `file:<path>` (bytes) override the repository
        Raises CoreError if it failed.
        """
        await self._repository.load_for_model(name, parameters or {})

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Unload a model for code in this process; return when no version is ready."""
        await self._repository.unload_for_model(name, unload_dependents)
