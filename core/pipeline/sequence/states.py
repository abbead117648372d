"""States: implicit state, the tensors that the server keeps between the requests of a sequence.

slots ─► [States] ─► runner … delivery ─► [StateUpdater] ─► the sequence.  A request gets the states of its
sequence as inputs. The model's outputs renew them; the client gets those only that are also ordinary outputs.
Source of the rules: ModelSequenceBatching.State in Triton's model_config.proto.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core import dtypes
from core.config.signature import Signature
from core.config.states import StateSpec
from core.errors import internal
from core.pipeline.batching.queue import QueuedRequest
from core.request import SEQUENCE_START, InferenceRequest
from core.tensor import DeviceTensor, Tensor


class States:
    """The implicit states of one model. Not thread-safe: call from the event loop only.

    key   function of a request: requests of one batch have equal keys; None if all may share a batch
    """

    def __init__(
        self, signature: Signature, key: Callable[[InferenceRequest], object] | None = None
    ):
        self._signature = signature
        self._initial = initial_states(signature)
        self._key = key
        self._variable = [s.input_name for s in signature.states.values() if -1 in s.dims]

    def key_of(self, kept: dict[str, Tensor] | None, request: InferenceRequest) -> object:
        """Return the key of the next request of a sequence, which includes the shapes of variable states.

        Call it just before the request runs, since the previous request may change the shapes.

        kept   states of the sequence; None before its first request
        """
        states = self._current(kept, request)
        shapes = tuple(states[name].shape for name in self._variable)
        return (self._key(request) if self._key else None), shapes

    def enter(self, kept: dict[str, Tensor] | None, waiting: QueuedRequest) -> dict[str, Tensor]:
        """Add the states to a request that runs now. Return the states, which its response renews."""
        states = dict(self._current(kept, waiting.request))
        waiting.request.inputs.update(states)
        waiting.keep = StateUpdater(states, self._signature)
        return states

    def _current(
        self, kept: dict[str, Tensor] | None, request: InferenceRequest
    ) -> dict[str, Tensor]:
        return self._initial if kept is None or request.flags & SEQUENCE_START else kept


class StateUpdater:
    """Callback that takes the states out of the responses to one request.

    A state stays in the memory of a device if no other tensor shares that memory; rows of a batch are copied
    to the host. Any thread may call it: no other request of the sequence runs before this one has ended.
    """

    def __init__(self, states: dict[str, Tensor], signature: Signature):
        self._states = states
        self._signature = signature

    def __call__(self, tensors: list[Tensor]) -> None:
        """Renew the states that a response contains, and keep the others.

        Raise CoreError(INTERNAL), and change nothing, if a datatype or shape does not fit its state.
        """
        specs = self._signature.states
        renewed = {
            spec.input_name: _kept(tensor, spec, self._signature)
            for tensor in tensors
            if (spec := specs.get(tensor.name)) is not None
        }
        self._states.update(renewed)


def initial_states(signature: Signature) -> dict[str, Tensor]:
    """Return the states of a new sequence, by input name."""
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
    if dtype is tensor.dtype and _owns_device_memory(tensor):
        return tensor.renamed(spec.input_name)
    return Tensor(spec.input_name, dtype, shape, array=_owned(tensor.array))


def _owns_device_memory(tensor: Tensor) -> bool:
    """Return whether a tensor is on a device and is the whole of its memory."""
    return isinstance(tensor, DeviceTensor) and tensor.value is tensor.memory.array


def _owned(array: np.ndarray) -> np.ndarray:
    """Return an array with memory of its own. A view would keep its whole batch as long as the sequence."""
    owns = array.base is None and array.flags.c_contiguous
    kept: np.ndarray = array.view() if owns else array.copy()
    kept.flags.writeable = False  # it is an input of later requests
    return kept
