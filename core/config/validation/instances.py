"""Checks of instance_group, on a configuration whose kinds and GPUs `normalise` has filled in."""

from __future__ import annotations

from collections.abc import Sequence

from core.config.formats import TENSORRT_PLAN
from core.config.messages import ModelConfig, ModelInstanceGroup
from core.errors import invalid

LEAST = 6.0  # default compute capability


def check_instance_groups(config: ModelConfig, gpus: Sequence[int], least: float) -> None:
    """Raise CoreError(INVALID) without groups, or if one has an unknown kind, wrong GPUs or a wrong profile.

    gpus    ids of the GPUs that instances may use
    least   compute capability that a GPU needs, for the error text
    """
    if not config.instance_group:
        raise invalid(f"must specify one or more 'instance group's for {config.name}")
    for index, group in enumerate(config.instance_group):
        place = f"instance_group[{index}]"
        prefix = f"instance group {group.name} of model {config.name}"
        _check_devices(group, gpus, least, prefix, place)
        _check_profiles(group, config.platform, prefix, place)


def _check_devices(
    group: ModelInstanceGroup, gpus: Sequence[int], least: float, prefix: str, place: str
) -> None:
    if group.kind not in ModelInstanceGroup.Kind.values():
        known = ", ".join(ModelInstanceGroup.Kind.keys())
        raise invalid(f"{prefix} has unexpected kind {group.kind}: {place}.kind; there are {known}")
    if group.kind != ModelInstanceGroup.KIND_GPU:
        if group.gpus:
            kind = ModelInstanceGroup.Kind.Name(group.kind)
            raise invalid(
                f"{prefix} has kind {kind} but specifies one or more GPUs: {place}.gpus is "
                f"{list(group.gpus)}"
            )
        return
    if not group.gpus:
        reason = "specifies no GPUs" if gpus else "no GPUs are available"
        raise invalid(f"{prefix} has kind KIND_GPU but {reason}: {place}")
    for index, gpu in enumerate(group.gpus):
        if gpu not in gpus:
            known = ", ".join(str(each) for each in sorted(gpus)) or "none"
            raise invalid(
                f"{prefix} specifies invalid or unsupported gpu id {gpu}. GPUs with at least the "
                f"minimum required CUDA compute compatibility of {least:.6f} are: {known}; "
                f"{place}.gpus[{index}]"
            )


def _check_profiles(group: ModelInstanceGroup, platform: str, prefix: str, place: str) -> None:
    if not group.profile:
        return
    prefix = f"{prefix} and platform {platform + ' ' if platform else ''}specifies"
    if platform != TENSORRT_PLAN:
        raise invalid(
            f"{prefix} profile field which is only supported for TensorRT models: {place}.profile"
        )
    for index, profile in enumerate(group.profile):
        if not (profile.isascii() and profile.isdigit()):
            raise invalid(
                f"{prefix} invalid profile {profile}. The field should contain the string "
                f"representation of a non-negative integer: {place}.profile[{index}]"
            )
