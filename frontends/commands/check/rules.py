"""The rules of a configuration that need no file of the model: those of core, and those of --rate-limit."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from core.config import ModelConfig, normalise
from core.config.validation import violations
from frontends.commands.check.places.paths import place_in
from frontends.commands.check.settings import Place, Settings

_OF_TENSORS = ("input", "output", "batch_input", "batch_output", "model_warmup")


def broken_rules(
    config: ModelConfig, place: Place, settings: Settings, *, whole: bool = False
) -> bool:
    """Report the rules that a configuration breaks; return whether there are any.

    whole   whether the configuration is complete; otherwise tensors that it lacks are no faults
    """
    trial = deepcopy(config)
    normalise(trial, {}, settings.gpus)
    broken = False
    for error in violations(trial, settings.formats, settings.gpus):
        where = place_in(error.message, trial)
        if (
            not whole
            and (not where or where.startswith(_OF_TENSORS))
            and "must specify" in error.message
        ):
            continue
        broken = True
        place.report.add(replace(place, config=trial).error(error, "configuration"))
    return broken


def check_rates(config: ModelConfig, place: Place, settings: Settings) -> None:
    """Report resources that are both global and of a device, and counts above --rate-limit-resource.

    If that option is given, a resource that it does not name has the limit 0; otherwise there is no limit.
    """
    given = settings.options.rate_limit_resource  # by name in lower case
    kinds: dict[str, bool] = {}
    for index, group in enumerate(config.instance_group):
        for number, resource in enumerate(group.rate_limiter.resources):
            where = f"instance_group[{index}].rate_limiter.resources[{number}]"
            name = resource.name.lower()
            everywhere = getattr(resource, "global")
            if kinds.setdefault(name, everywhere) != everywhere:
                text = f'Resource "{resource.name}" is present as both global and device-specific resource'
                place.report.add(place.finding("error", "resource", text, where))
            limit = max(given[name].values(), default=0) if name in given else 0
            if given and resource.count > limit:
                text = (
                    f'Resource count for "{resource.name}" is limited to {limit} which will prevent '
                    "scheduling of one or more model instances, the minimum required count is "
                    f"{resource.count}"
                )
                place.report.add(place.finding("error", "resource", text, where))


def without_labels_and_states(config: ModelConfig) -> ModelConfig:
    """Return a copy for `signature_of`, without label files and implicit states.

    A signature would read their files without bounds; a check has read them with bounds.
    """
    copy = deepcopy(config)
    for output in copy.output:
        output.ClearField("label_filename")
    if copy.HasField("sequence_batching"):
        copy.sequence_batching.ClearField("state")
    return copy
