"""Write the defaults of a configuration out, so that later readers need no defaults. Idempotent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.config.messages import ModelConfig, ModelInstanceGroup

SEQUENCE_IDLE_US = 1_000_000


def normalise(
    config: ModelConfig, backend_instances: Mapping[str, int], gpus: Sequence[int]
) -> None:
    """Fill in, in place, version policy, scheduling and, except for ensembles, pinned memory and instances.

    backend_instances   the backend's default `count`, by kind ("CPU", "GPU", "MODEL")
    gpus                ids of the GPUs that instances may use; empty without GPUs
    """
    if config.version_policy.WhichOneof("policy_choice") is None:
        config.version_policy.latest.num_versions = 1
    _normalise_scheduling(config)
    if config.HasField("ensemble_scheduling"):
        # An ensemble has no instances and no memory. Triton always prints its model_transaction_policy.
        config.model_transaction_policy.SetInParent()
        return
    for buffer in ("input_pinned_memory", "output_pinned_memory"):
        if not config.optimization.HasField(buffer):
            getattr(config.optimization, buffer).enable = True
    _normalise_groups(config, backend_instances, gpus)


def _normalise_scheduling(config: ModelConfig) -> None:
    most = config.max_batch_size
    if config.HasField("dynamic_batching"):
        batching = config.dynamic_batching
        if not batching.preferred_batch_size and most > 0:
            batching.preferred_batch_size.append(most)
    if config.HasField("sequence_batching"):
        sequence = config.sequence_batching
        if not sequence.max_sequence_idle_microseconds:
            sequence.max_sequence_idle_microseconds = SEQUENCE_IDLE_US
        if sequence.HasField("oldest") and not sequence.oldest.preferred_batch_size and most > 0:
            sequence.oldest.preferred_batch_size.append(most)


def _normalise_groups(
    config: ModelConfig, backend_instances: Mapping[str, int], gpus: Sequence[int]
) -> None:
    if not config.instance_group:
        kind = ModelInstanceGroup.KIND_AUTO
        if backend_instances and not {"CPU", "GPU"} & backend_instances.keys():
            kind = ModelInstanceGroup.KIND_MODEL  # the only kind of the backend
        config.instance_group.add(name=config.name, kind=kind)
    for index, group in enumerate(config.instance_group):
        if not group.name:
            group.name = f"{config.name}_{index}"
        if group.kind == ModelInstanceGroup.KIND_AUTO:
            only_cpu = not group.gpus and backend_instances.keys() & {"CPU", "GPU"} == {"CPU"}
            on_gpu = gpus and not only_cpu and set(group.gpus) <= set(gpus)
            group.kind = ModelInstanceGroup.KIND_GPU if on_gpu else ModelInstanceGroup.KIND_CPU
        if group.count < 1:
            group.count = _default_count(group, backend_instances)
        if group.kind == ModelInstanceGroup.KIND_GPU and not group.gpus:
            group.gpus.extend(sorted(gpus))


def _default_count(group: ModelInstanceGroup, backend_instances: Mapping[str, int]) -> int:
    known = ModelInstanceGroup.Kind.values()  # validation refuses a number that is no kind
    kind = ModelInstanceGroup.Kind.Name(group.kind)[len("KIND_") :] if group.kind in known else ""
    return max(backend_instances.get(kind, 1), 1)
