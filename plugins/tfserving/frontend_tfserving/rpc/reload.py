"""HandleReloadConfigRequest: the models of the list are loaded, all others unloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from core.errors import CoreError, Kind, invalid, unsupported
from frontend_tfserving.rpc import messages
from frontend_tfserving.signatures import LABEL
from frontends.grpc.services.repository import to_the_end

if TYPE_CHECKING:
    from core.server import InferenceServer


async def reload(
    server: InferenceServer, request: messages.ReloadConfigRequest
) -> messages.ReloadConfigResponse:
    """Load the models of the list that are not loaded, then unload the others.

    A model is found by its name in the repositories of the server; `base_path` is not read. The changes
    continue if the client disconnects. Raises CoreError: INVALID without a list, UNSUPPORTED for versions and
    labels that only config.pbtxt can set, and what a load or unload raises.
    """
    await to_the_end(_reload(server, request))
    return messages.ReloadConfigResponse(status=messages.StatusProto())


async def _reload(server: InferenceServer, request: messages.ReloadConfigRequest) -> None:
    if request.config.WhichOneof("config") != "model_config_list":
        raise invalid("the request has no model_config_list")
    listed = request.config.model_config_list.config
    names = [each.name for each in listed]
    if not all(names) or len(set(names)) < len(names):
        raise invalid("each model of the list needs a name, and a name that no other one has")
    for each in listed:
        _check(server, each)
    there = await server.control.repository.index(False)
    ready = {each["name"] for each in there if each.get("state") == "READY"}
    for name in names:
        if name not in ready:
            await server.control.repository.load(name, {})
    for name in sorted(ready - set(names)):
        await server.control.repository.unload(name)


def _check(server: InferenceServer, model: messages.ModelConfig) -> None:
    """Raise CoreError(UNSUPPORTED) for versions or labels that differ from those of config.pbtxt."""
    policy = _policy(model)
    if policy.WhichOneof("policy_choice") == "specific":
        raise unsupported(
            f"model '{model.name}': the versions that are served are those of version_policy in "
            "config.pbtxt; set them there"
        )
    for label, version in model.version_labels.items():
        if _label(server, model.name, label) != str(version):
            raise unsupported(
                f"model '{model.name}': the label '{label}' of version {version} is not in config.pbtxt; set "
                f"the parameter '{LABEL}{label}' there"
            )


def _policy(model: messages.ModelConfig) -> messages.ServableVersionPolicy:
    try:
        return messages.ServableVersionPolicy.FromString(model.model_version_policy)
    except DecodeError as error:
        raise invalid(
            f"model '{model.name}': its model_version_policy is no message: {error}"
        ) from None


def _label(server: InferenceServer, model: str, label: str) -> str:
    """Return the version of a label as text; "" if the model is not loaded, or has no such label."""
    try:
        parameters = server.models.config(model).parameters
    except CoreError as error:
        if error.kind in (Kind.NOT_FOUND, Kind.UNAVAILABLE):
            return ""
        raise
    found = parameters.get(LABEL + label)
    return "" if found is None else found.string_value
