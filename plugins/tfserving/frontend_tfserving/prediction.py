"""send, received: the outputs of a model for some inputs, whatever the number of rows.

inputs ─► rows of at most max_batch_size ─► InferenceRequest … ─► Reply … ─► outputs of all rows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.errors import invalid, unsupported
from core.request import NEWEST, InferenceRequest, RequestedOutput
from core.response import InferenceResponse, Reply
from core.tensor import Tensor
from frontend_tfserving.signatures import as_rows, as_vectors

if TYPE_CHECKING:
    from core.config import Signature

MOST_PARTS = 4096
"""Largest number of requests to a model that one call becomes."""

Submit = Callable[[InferenceRequest], Reply]
Outputs = Mapping[str, Tensor]


def send(
    submit: Submit,
    signature: Signature,
    inputs: Mapping[str, Tensor],
    outputs: Sequence[str] = (),
    version: int = NEWEST,
) -> list[Reply]:
    """Send the rows to the model, in parts of at most max_batch_size; return the reply of each part.

    outputs   names of the wanted outputs; all if empty
    Raises CoreError if a part is refused; the parts before it are cancelled. Event loop only.
    """
    for name in outputs:
        if name not in signature.outputs:
            raise invalid(
                f"model '{signature.name}' has no output '{name}'; it has {', '.join(signature.outputs)}"
            )
    inputs = as_rows(signature, inputs)
    wanted = tuple(RequestedOutput(name) for name in outputs)
    replies: list[Reply] = []
    try:
        for part in _parts(signature, inputs):
            request = InferenceRequest(
                signature.name, dict(part), model_version=version, outputs=wanted
            )
            replies.append(submit(request))
    except BaseException:
        _cancel(replies)
        raise
    return replies


async def received(
    signature: Signature, replies: Sequence[Reply], vectors: bool = False
) -> tuple[Outputs, int]:
    """Return (outputs of all parts by name, version of the model that has answered).

    vectors   whether all outputs with one value in each row are vectors
    Raises the CoreError of the first part that fails; the others are cancelled.
    """
    try:
        answers = [await reply for reply in replies]
    except BaseException:
        _cancel(replies)
        raise
    return as_vectors(signature, _joined(answers), vectors), answers[0].model_version


def _cancel(replies: Sequence[Reply]) -> None:
    for reply in replies:
        reply.cancel()


def _parts(signature: Signature, inputs: Mapping[str, Tensor]) -> list[Mapping[str, Tensor]]:
    """Return the inputs in parts of at most max_batch_size rows; one part for a model without batches."""
    most = signature.max_batch_size
    rows = {tensor.shape[0] for tensor in inputs.values() if tensor.shape}
    if not most or len(rows) != 1 or (count := rows.pop()) <= most:
        return [inputs]  # what does not fit is refused by the model's own checks
    if count > most * MOST_PARTS:
        raise invalid(
            f"the request has {count} examples; model '{signature.name}' takes at most {most * MOST_PARTS} "
            "in one"
        )
    return [
        {
            name: Tensor(
                name,
                tensor.dtype,
                (min(most, count - first), *tensor.shape[1:]),
                array=tensor.array[first : first + most],
            )
            for name, tensor in inputs.items()
        }
        for first in range(0, count, most)
    ]


def _joined(answers: Sequence[InferenceResponse]) -> Outputs:
    """Return the outputs of all parts, one after another."""
    if len(answers) == 1:
        return {tensor.name: tensor for tensor in answers[0].outputs}
    joined = {}
    for tensor in answers[0].outputs:
        arrays = [answer.output(tensor.name).array for answer in answers]
        try:
            array = np.concatenate(arrays)
        except ValueError:
            shapes = ", ".join(str(list(each.shape)) for each in arrays[:4])
            raise unsupported(
                f"output '{tensor.name}' has other shapes in the parts of the request: {shapes}; send at "
                "most max_batch_size examples"
            ) from None
        joined[tensor.name] = Tensor(tensor.name, tensor.dtype, array.shape, array=array)
    return joined
