"""InstanceSpec: one instance that a model's configuration asks for.

instance_group ─► [instance_specs] ─► InstanceSpec ─► instance ─► Pool.  Equal specs can use the same
instance; equality ignores names, as in Triton.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.backend import Device, Model, ModelInstance
from core.config import ModelConfig
from core.config.messages import ModelInstanceGroup
from core.pipeline.instances.rate_limiter import ResourceDemand, demand_of
from core.system.host_policy import HostPolicies, HostPolicy

_KINDS = {1: "GPU", 2: "CPU", 3: "MODEL"}  # ModelInstanceGroup.Kind; normalise has replaced AUTO


@dataclass(frozen=True)
class InstanceSpec:
    """One instance that a configuration asks for.

    name      "<group>_<index>"
    demand    resources of the rate limiter that one execution needs
    The other fields are those of core.ModelInstance.
    """

    name: str = field(compare=False)
    device: Device
    host_policy: HostPolicy
    demand: ResourceDemand
    passive: bool = False
    profiles: tuple[str, ...] = ()
    secondary_devices: tuple[Device, ...] = ()

    def instance(self, model: Model) -> ModelInstance:
        """Return a new instance for this spec; it is not open."""
        instance = model.backend.instance()
        instance.model = model
        instance.name = self.name
        instance.device = self.device
        instance.host_policy = self.host_policy
        instance.passive = self.passive
        instance.profiles = self.profiles
        instance.secondary_devices = self.secondary_devices
        return instance


def instance_specs(config: ModelConfig, policies: HostPolicies) -> list[InstanceSpec]:
    """Return the specs of all instance groups of a normalised configuration, in their order."""
    return [
        InstanceSpec(
            name=f"{group.name}_{index}",
            device=device,
            host_policy=policies.named(group.host_policy or _default_policy(device)),
            demand=demand_of(group, device.id, config.name),
            passive=group.passive,
            profiles=tuple(group.profile),
            secondary_devices=_secondary_devices(group),
        )
        for group in config.instance_group
        for device in [Device("GPU", gpu) for gpu in group.gpus] or [Device(_KINDS[group.kind])]
        for index in range(group.count)
    ]


def match_specs(
    old: Sequence[InstanceSpec], new: Sequence[InstanceSpec]
) -> tuple[list[int], list[InstanceSpec]]:
    """Return the indices of old specs whose instances stay, and the new specs that need an instance.

    An instance stays if an equal new spec has its name. If no new spec has its name, it stays for any equal
    new spec that is left.
    """
    kept: list[int] = []
    opened = list(new)
    names = {spec.name for spec in new}
    for same_name in (True, False):
        for index, spec in enumerate(old):
            if index in kept or (not same_name and spec.name in names):
                continue
            for asked in opened:
                if asked == spec and (asked.name == spec.name or not same_name):
                    kept.append(index)
                    opened.remove(asked)
                    break
    return sorted(kept), opened


def with_demands(
    specs: Sequence[InstanceSpec], old: Sequence[InstanceSpec], new: Sequence[InstanceSpec]
) -> list[InstanceSpec]:
    """Return `specs` of a configuration with the demands of another one, which differs in demands only.

    old, new   all specs of the two configurations; `specs` are some of `old`, and may have other names
    """
    pairs = list(zip(old, new, strict=True))
    found = []
    for spec in specs:
        pair = min(pairs, key=lambda each: (each[0] != spec, each[0].name != spec.name))
        pairs.remove(pair)
        found.append(replace(spec, demand=pair[1].demand))
    return found


def _default_policy(device: Device) -> str:
    """Return the host policy of a group that names none: "cpu", "gpu_<id>" or "model"."""
    return f"gpu_{device.id}" if device.kind == "GPU" else device.kind.lower()


def _secondary_devices(group: ModelInstanceGroup) -> tuple[Device, ...]:
    kinds = ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind
    return tuple(
        Device(kinds.Name(each.kind).removeprefix("KIND_"), each.device_id)
        for each in group.secondary_devices
    )
