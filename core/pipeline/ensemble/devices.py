"""Which tensors of an ensemble may stay on the device where a step makes them.

EnsembleChain ─► [outputs_asked] ─► Plan.  What only steps take that want it there stays there. What a client
gets, a condition looks at or another step wants in host memory is copied by the step that makes it, on the
thread of its instance, so that the loop does not wait for a device.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.pipeline.ensemble.steps import Step
from core.request import DeviceOutput, RequestedOutput


def outputs_asked(
    steps: Sequence[Step], wanted: Sequence[RequestedOutput]
) -> dict[int, tuple[RequestedOutput, ...]] | None:
    """Index of each step → the outputs that its model is asked for; None if none may stay on a device.

    steps    those that run
    wanted   what the client wants of the ensemble
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
