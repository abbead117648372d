"""Decides which tensors of an ensemble stay in the memory of the device where a step makes them.

EnsembleChain ─► [outputs_asked] ─► EnsemblePlan.  A tensor stays on its device if the client or the model of
a step accepts it there. If the client, a condition or a step also needs it in host memory, the step that
makes it copies it on the thread of its instance, so the event loop never waits for a device.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.pipeline.ensemble.steps import Step
from core.request import DeviceOutput, RequestedOutput


def outputs_asked(
    steps: Sequence[Step], wanted: Sequence[RequestedOutput]
) -> dict[int, tuple[RequestedOutput, ...]] | None:
    """Return, by index of the step, the outputs to request from its model; None if none may stay on a device.

    steps    the steps that run
    wanted   the outputs that the client wants
    """
    there: set[str] = set()
    here: set[str] = set()
    for step in steps:
        (there if step.takes_device else here).update(step.inputs.values())
        if step.condition is not None:
            here.add(step.condition)
    for output in wanted:
        if isinstance(output, DeviceOutput):
            there.add(output.name)
        if not isinstance(output, DeviceOutput) or output.host:
            here.add(output.name)
    if not there:
        return None
    return {
        step.index: tuple(
            DeviceOutput(theirs, ours in here) if ours in there else RequestedOutput(theirs)
            for theirs, ours in step.outputs.items()
        )
        for step in steps
    }
