"""States: what the server keeps of a sequence between its requests.

lane ─► [States] ─► worker … delivery ─► [Keeper] ─► the sequence.  A request that runs gets the states
of its sequence as inputs; the outputs with which the model renews them stay here.
Source of the rules: ModelSequenceBatching.State in Triton's model_config.proto.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core import dtypes
from core.config.signature import Signature
from core.config.states import StateSpec
from core.errors import internal
from core.pipeline.batching.queue import Waiting
from core.request import SEQUENCE_START, InferenceRequest
from core.tensor import DeviceTensor, Tensor


class States:
    """The states of one model. Loop thread only.

    key   of the scheduler: what requests of one batch must share, None if all fit together
    """

    def __init__(
        self, signature: Signature, key: Callable[[InferenceRequest], object] | None = None
    ):
        self._signature = signature
        self._initial = initial_states(signature)
        self._key = key
        self._variable = [s.input_name for s in signature.states.values() if -1 in s.dims]

    def key_of(self, kept: dict[str, Tensor] | None, request: InferenceRequest) -> object:
        """What the next request of a sequence must share with the others of its batch.

        Known only when it runs: the shape of a state is what the request before has made of it.
        kept   what the sequence has, None before its first request
        """
        states = self._current(kept, request)
        shapes = tuple(states[name].shape for name in self._variable)
        return (self._key(request) if self._key else None), shapes

    def enter(self, kept: dict[str, Tensor] | None, waiting: Waiting) -> dict[str, Tensor]:
        """A request runs now: it gets the states, and its answers renew what is returned."""
        states = dict(self._current(kept, waiting.request))
        waiting.request.inputs.update(states)
        waiting.keep = Keeper(states, self._signature)
        return states

    def _current(
        self, kept: dict[str, Tensor] | None, request: InferenceRequest
    ) -> dict[str, Tensor]:
        return self._initial if kept is None or request.flags & SEQUENCE_START else kept


class Keeper:
    """Takes the states out of the answers to one request. Any thread: no other request of its
    sequence runs before it has got its last answer.

    A state stays on the device where the model has made it, if nothing else shares its memory there; rows of
    a batch are copied to the host.
    """

    def __init__(self, states: dict[str, Tensor], signature: Signature):
        self._states = states
        self._signature = signature

    def __call__(self, tensors: list[Tensor]) -> None:
        """Keep what an answer says of the states; those that it does not name stay as they are.

        Raises CoreError(INTERNAL), and changes nothing, for a datatype or shape that a state has not.
        """
        specs = self._signature.states
        renewed = {
            spec.input_name: _kept(tensor, spec, self._signature)
            for tensor in tensors
            if (spec := specs.get(tensor.name)) is not None
        }
        self._states.update(renewed)


def initial_states(signature: Signature) -> dict[str, Tensor]:
    """What the first request of a sequence gets, by input name."""
    return {spec.input_name: spec.initial for spec in signature.states.values()}


def _kept(tensor: Tensor, spec: StateSpec, signature: Signature) -> Tensor:
    dtype, shape = tensor.dtype, tensor.shape
    if spec.dtype is dtypes.BF16 and dtype is dtypes.UINT16:  # its bit patterns
        dtype = spec.dtype
    if dtype is not spec.dtype or not spec.fits(shape, signature.max_batch_size > 0):
        expected = list((1, *spec.dims) if signature.max_batch_size else spec.dims)
        raise internal(
            f"model '{signature.name}' gave state '{spec.output_name}' as {tensor.dtype} with shape "
            f"{list(shape)} for one request, its configuration says {spec.dtype} with shape {expected}"
        )
    if dtype is tensor.dtype and _is_alone(tensor):
        return tensor.renamed(spec.input_name)
    return Tensor(spec.input_name, dtype, shape, array=_own(tensor.array))


def _is_alone(tensor: Tensor) -> bool:
    """Whether it is on a device, and all of its memory there."""
    return isinstance(tensor, DeviceTensor) and tensor.value is tensor.memory.array


def _own(array: np.ndarray) -> np.ndarray:
    """Memory that holds nothing else alive: a row would keep its batch for as long as its sequence."""
    owns = array.base is None and array.flags.c_contiguous
    kept: np.ndarray = array.view() if owns else array.copy()
    kept.flags.writeable = False  # it is an input of requests to come
    return kept
