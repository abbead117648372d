"""Inputs and outputs that a model file declares: they complete a configuration, and are compared with it.

file ─► FileSignature ─► [fill] ─► normalise ─► validate ─► [check] ─► instance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from core import completion, dtypes
from core.backend import Backend
from core.config import ModelConfig
from core.dtypes import DataType
from core.errors import invalid, unsupported

T = TypeVar("T", bound="FileTensor")


@dataclass(frozen=True)
class FileTensor:
    """One input or output of a file. The subclass of a backend sets `carried`, and may add fields.

    type      name of its datatype in the framework
    dims      sizes, that of the batch included; -1 for any size; () for a scalar
    carried   name of a type → datatype, for the types that requests can carry
    advice    what the error for another type says before the names of `carried`
    """

    name: str
    type: str
    dims: tuple[int, ...]
    carried: ClassVar[Mapping[str, DataType]] = {}
    advice: ClassVar[str] = "which cannot be sent to clients; convert it to one of"

    def dtype_for(self, model: str) -> DataType:
        """Return the datatype. Raises CoreError(UNSUPPORTED) if requests cannot carry it."""
        if self.type in self.carried:
            return self.carried[self.type]
        names = ", ".join(each.name for each in self.carried.values())
        raise unsupported(
            f"model '{model}': '{self.name}' is of type {self.type}, {self.advice} {names}"
        )

    def dims_in(self, config: ModelConfig) -> tuple[int, ...]:
        """Return the dims that a configuration gives it: without the batch, and (1,) for a scalar."""
        return self.dims[bool(config.max_batch_size) :] or (1,)

    def check(self, config: ModelConfig, number: int, dims: tuple[int, ...] | None) -> None:
        """Raise CoreError(INVALID) unless it has the datatype of this number, and these dims if not None.

        Dims [] and [1] both stand for a scalar. A number of no datatype is left to the validation.
        """
        wanted, asked = self.dtype_for(config.name), dtypes.BY_NUMBER.get(number)
        if asked is not None and asked is not wanted:
            raise invalid(
                f"unable to load model '{config.name}', configuration expects datatype {asked.config_name} "
                f"for '{self.name}', model provides {wanted.config_name}"
            )
        if dims is None:
            return
        batch, found = bool(config.max_batch_size), self.dims_in(config)
        fits = len(dims) == len(found) and all(
            a == b or -1 in (a, b) for a, b in zip(dims, found, strict=True)
        )
        if len(self.dims) <= batch:  # its [1] is no dimension of any size
            fits = dims in ((), (1,))
        if not fits:
            raise invalid(
                f"model '{config.name}', tensor '{self.name}': the model has dims {list(found)}, the "
                f"configuration {list(dims)}" + (", both without the batch" if batch else "")
            )


@dataclass(frozen=True)
class FileSignature(Generic[T]):
    """Inputs and outputs of a file by name, in its order.

    outputs_known   False if only a run shows the outputs; `outputs` is empty then
    """

    inputs: dict[str, T]
    outputs: dict[str, T]
    outputs_known: bool = field(default=True, kw_only=True)

    @property
    def all(self) -> list[T]:
        return [*self.inputs.values(), *self.outputs.values()]

    @property
    def batches(self) -> bool:
        """Return whether the first dimension of every tensor is open: it is that of the batch."""
        return all(each.dims[:1] == (-1,) for each in self.all)

    def fill(self, config: ModelConfig, backend: Backend, name: str) -> None:
        """Fill in inputs, outputs, dynamic_batching and, unless dims include the batch, max_batch_size.

        name   of the backend in --backend-config
        Raises CoreError for an entry that is not in the file, and a datatype that requests cannot carry.
        """
        described = completion.is_described(config)
        if self.batches:
            known = {"input": self.inputs, "output": self.outputs}
            includes_batch = any(
                name in known[kind] and len(dims) == len(known[kind][name].dims) and dims != (1,)
                for kind, name, _, dims in _entries(config)  # a row without dims is written [1]
            )
            if not (described or config.max_batch_size or includes_batch):
                rows = completion.default_max_batch_size(backend, name)
                completion.fill_max_batch_size(config, max(1, rows))
            completion.fill_scheduler(config)
        if not described:
            inputs, outputs = completion.tensors_of_the_server(config)
            self._fill(config, config.input, "input", inputs)
            if self.outputs_known:
                self._fill(config, config.output, "output", outputs)

    def check(self, config: ModelConfig, *, loose: Collection[str] = ()) -> None:
        """Compare the inputs, outputs, states and controls of a configuration with the file.

        loose   names of tensors whose dims the caller compares
        Raises CoreError(INVALID) for a name, datatype, shape or number of inputs that does not fit, and
        CoreError(UNSUPPORTED) for a datatype that requests cannot carry.
        """
        given = {io.name for io in config.input} | completion.tensors_of_the_server(config)[0]
        for name in sorted(given):
            self._tensor("input", name)
        if missing := [name for name in self.inputs if name not in given]:
            raise completion.wrong_inputs(config.name, given, self.inputs, missing)
        for kind, name, number, dims in _entries(config):
            if kind == "input" or self.outputs_known:
                self._tensor(kind, name).check(config, number, None if name in loose else dims)

    def _tensor(self, kind: str, name: str) -> T:
        """Return an "input" or "output". Raises CoreError(INVALID) if there is none."""
        tensors = self.inputs if kind == "input" else self.outputs
        if name not in tensors:
            raise invalid(
                f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(sorted(tensors))}"
            )
        return tensors[name]

    def _fill(self, config: ModelConfig, entries: Any, kind: str, kept: Collection[str]) -> None:
        """Fill in data_type and dims. Without entries, first add those of all tensors but `kept`."""
        if not entries:
            for name in self.inputs if kind == "input" else self.outputs:
                if name not in kept:
                    entries.add(name=name)
        for entry in entries:
            tensor = self._tensor(kind, entry.name)
            entry.data_type = entry.data_type or tensor.dtype_for(config.name).number
            if not entry.dims:
                entry.dims.extend(tensor.dims_in(config))


def is_complete(config: ModelConfig) -> bool:
    """Return whether a file has nothing to add to a configuration."""
    scheduled = config.max_batch_size <= 1 or config.WhichOneof("scheduling_choice") is not None
    return completion.is_described(config) and scheduled


def check_fields(config: ModelConfig, framework: str) -> None:
    """Raise CoreError(UNSUPPORTED) for optional inputs, and for what ragged batches need."""
    batch_tensors = config.batch_input or config.batch_output
    used = ["batch_input and batch_output are"] if batch_tensors else []
    for word in ("optional", "allow_ragged_batch"):
        used += [f"'{word}' of input '{io.name}' is" for io in config.input if getattr(io, word)]
    if used:
        raise unsupported(
            f"model '{config.name}': {used[0]} not for {framework} models; remove that from config.pbtxt"
        )


def outputs_without_dims(config: ModelConfig) -> set[str]:
    """Return the outputs and states of scalars without the dims [1] that other scalars have for core."""
    return {name for kind, name, _, dims in _entries(config) if kind == "output" and not dims}


def _entries(config: ModelConfig) -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
    """Yield kind, name, number of the datatype, and dims for the model, of all tensors but batch inputs."""
    for kind, entries in (("input", config.input), ("output", config.output)):
        for io in entries:
            dims = io.reshape.shape if io.HasField("reshape") else io.dims
            yield kind, io.name, io.data_type, tuple(dims)
    for state in config.sequence_batching.state:
        yield "input", state.input_name, state.data_type, tuple(state.dims)
        yield "output", state.output_name, state.data_type, tuple(state.dims)
    for tensor in config.sequence_batching.control_input:
        for control in tensor.control:
            number = int(control.data_type)  # of a correlation ID; others have values of a datatype
            for dtype in (dtypes.INT32, dtypes.FP32, dtypes.BOOL):
                if getattr(control, f"{dtype.name.lower()}_false_true"):
                    number = dtype.number
            yield "input", tensor.name, number, (1,)
