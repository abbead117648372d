"""HandleReloadConfigRequest: the models of the list are loaded, all others unloaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from core.errors import invalid, unsupported
from core.governing import name_of
from frontend_tfserving.rpc import messages
from frontend_tfserving.signatures import EXPLAINER, LABEL, OTHER
from frontends.grpc.services.repository import to_the_end

if TYPE_CHECKING:
    from core.config import ModelConfig
    from core.lifecycle import ModelVersion
    from core.server import InferenceServer


async def reload(
    server: InferenceServer, request: messages.ReloadConfigRequest
) -> messages.ReloadConfigResponse:
    """Load the models of the list that are not loaded, then unload the others.

    Models that the list needs stay: steps of its ensembles, models of its further signatures, explainers. A
    model that its next request loads counts as loaded. Models are found by their names in the repositories of
    the server; `base_path` is not read. The changes continue if the client disconnects.
    Raises CoreError: INVALID without a list, UNSUPPORTED for versions and labels that only config.pbtxt can
    set, and what a load or unload raises.
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
        _check_versions(each)
        _check_labels(server, each)
    there = await server.control.repository.index(False)
    ready = {each["name"] for each in there if each.get("state") == "READY"}
    resting = {each.name for each in server.models.versions() if each.at_rest}
    for each in listed:
        if each.name not in ready | resting:
            await server.control.repository.load(each.name, {})
            _check_labels(server, each)
    loaded = _loaded(server)
    for name in sorted((ready | loaded.keys()) - _needed(names, loaded)):
        await server.control.repository.unload(name)


def _loaded(server: InferenceServer) -> dict[str, list[ModelVersion]]:
    """Return the versions of each model that serves, is being loaded, or that its next request loads."""
    found: dict[str, list[ModelVersion]] = {}
    for version in server.models.versions():
        if version.wanted or version.at_rest:
            found.setdefault(version.name, []).append(version)
    return found


def _needed(names: Iterable[str], loaded: Mapping[str, Iterable[ModelVersion]]) -> set[str]:
    """Return the names with those of the models that these need, directly or not."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) in found:
            continue
        found.add(name)
        for version in loaded.get(name, ()):
            waiting.extend(map(name_of, version.source.steps))
            for key, entry in _config(version).parameters.items():
                if key == EXPLAINER or key.startswith(OTHER):
                    waiting.append(entry.string_value)
    return found


def _config(version: ModelVersion) -> ModelConfig:
    return version.config if version.state == "READY" else version.source.config


def _check_versions(model: messages.ModelConfig) -> None:
    """Raise CoreError(UNSUPPORTED) for a list of versions: config.pbtxt has it."""
    policy = _policy(model)
    if policy.WhichOneof("policy_choice") == "specific":
        raise unsupported(
            f"model '{model.name}': the versions that are served are those of version_policy in "
            "config.pbtxt; set them there"
        )


def _check_labels(server: InferenceServer, model: messages.ModelConfig) -> None:
    """Raise CoreError(UNSUPPORTED) if the newest version of a model, if there is one, has other labels."""
    versions = [each for each in _loaded(server).get(model.name, ()) if not each.failed]
    if not versions:
        return
    parameters = _config(versions[-1]).parameters
    for label, version in model.version_labels.items():
        found = parameters.get(LABEL + label)
        if found is None or found.string_value != str(version):
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
