"""Seats: the instances that a configuration's groups ask for, one by one.

instance_group ─► [seats_of] ─► Seat ─► instance ─► Pool.  Two seats that are equal could be taken by the
same instance; their names do not count, as in Triton.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.backend import Device, Model, ModelInstance
from core.config import ModelConfig
from core.config.messages import ModelInstanceGroup
from core.host_policy import HostPolicies, HostPolicy
from core.pipeline.instances.limit import Demand, demand_of

_KINDS = {1: "GPU", 2: "CPU", 3: "MODEL"}  # ModelInstanceGroup.Kind; AUTO is gone by now


@dataclass(frozen=True)
class Seat:
    """One instance that a configuration asks for.

    name      "<group>_<index>"
    demand    what its executions take of the rate limiter's resources
    The others are those of core.ModelInstance.
    """

    name: str = field(compare=False)
    device: Device
    host_policy: HostPolicy
    demand: Demand
    passive: bool = False
    profiles: tuple[str, ...] = ()
    secondary_devices: tuple[Device, ...] = ()

    def instance(self, model: Model) -> ModelInstance:
        """An instance for the seat, not yet opened."""
        instance = model.backend.instance()
        instance.model = model
        instance.name = self.name
        instance.device = self.device
        instance.host_policy = self.host_policy
        instance.passive = self.passive
        instance.profiles = self.profiles
        instance.secondary_devices = self.secondary_devices
        return instance


def seats_of(config: ModelConfig, policies: HostPolicies) -> list[Seat]:
    """What the groups of a normalised configuration ask for, in their order."""
    return [
        Seat(
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


def matched(old: Sequence[Seat], new: Sequence[Seat]) -> tuple[list[int], list[Seat]]:
    """Which of the old seats serve on, as indices, and which of the new ones need an instance.

    An old seat serves on for a new one that is equal: first of the same name, then of a name that
    nobody else asks for.
    """
    kept: list[int] = []
    opened = list(new)
    names = {seat.name for seat in new}
    for same_name in (True, False):
        for index, seat in enumerate(old):
            if index in kept or (not same_name and seat.name in names):
                continue
            for wish in opened:
                if wish == seat and (wish.name == seat.name or not same_name):
                    kept.append(index)
                    opened.remove(wish)
                    break
    return sorted(kept), opened


def _default_policy(device: Device) -> str:
    """The policy of an instance whose group names none: "cpu", "gpu_<id>" or "model"."""
    return f"gpu_{device.id}" if device.kind == "GPU" else device.kind.lower()


def _secondary_devices(group: ModelInstanceGroup) -> tuple[Device, ...]:
    kinds = ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind
    return tuple(
        Device(kinds.Name(each.kind).removeprefix("KIND_"), each.device_id)
        for each in group.secondary_devices
    )
