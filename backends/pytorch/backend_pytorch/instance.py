"""execute: tensors ─► run ─► arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_pytorch.framework import execute_failure, first_line, has_gpus, import_torch
from backend_pytorch.naming import config_inputs, config_outputs, places
from backend_pytorch.program import datatype_of
from backend_pytorch.threads import settings
from core import dtypes
from core.backend import Device, ModelInstance
from core.batch import Batch
from core.errors import CoreError, Fatal, internal, invalid
from core.ragged import batch_inputs, scattered

if TYPE_CHECKING:
    from backend_pytorch.backend import TorchModel
    from backend_pytorch.device_runs import DeviceRuns
    from backend_pytorch.plain import PlainRun

AHEAD = 2  # batches on GPUs: one computes while the inputs of the next one are copied


class TorchInstance(ModelInstance):
    """Run batches on a program, which other instances of the device may use at the same time."""

    model: TorchModel
    _runs: DeviceRuns | None = None  # on GPUs
    placement = "auto"  # every thread may run torch

    @property
    def device(self) -> Device:
        """The device of the instance. Its setter chooses `placement`, which core reads before `open`."""
        return self._device

    @device.setter
    def device(self, device: Device) -> None:
        self._device = device
        if device.kind != "CPU" and has_gpus():
            self.placement, self.ahead = "callback", AHEAD

    def open(self) -> None:
        self._torch = import_torch()
        self._program = self.model.program_on(self.device)
        config, parameters = self.model.config, self.model.parameters
        self._inputs = _datatypes(config, config_inputs(config))
        self._outputs = _datatypes(config, config_outputs(config))
        self._names = list(self._outputs)
        program = self._program
        self._keys = program.takes is None
        # Inputs with shape [1] for clients, and no dimension for the program.
        self._scalar_inputs: set[str] = set()
        if program.takes is not None:
            self._input_places = places(list(self._inputs), program.takes, "input", config.name)
            self._scalar_inputs = {
                name for name, i in self._input_places.items() if program.takes[i].dims == ()
            }
        self._output_places = places(self._names, program.gives, "output", config.name)
        self._text_dims = {
            io.name: tuple(io.dims) for io in config.output if io.data_type == dtypes.BYTES.number
        }
        self._scalars = {
            io.name: tuple(io.reshape.shape) for io in config.output if io.HasField("reshape")
        }
        self._inference = parameters.boolean("INFERENCE_MODE") is not False
        if self.placement == "callback":
            from backend_pytorch.device_runs import device_runs

            self._runs = device_runs(
                self, program, self._inputs, self._outputs, self._scalar_inputs
            )
            self.memory = "device" if self._runs.takes_device else "host"
        elif program.kind == "Python":
            self.placement = "thread"
        self._run = self._runner()
        self._plain = self._make_plain()

    def _runner(self) -> Callable[[Any], Any]:
        """Return the function that runs the program, through CUDA graphs if the configuration says so."""
        if self.device.kind != "GPU" or self._runs is None or not self.model.graphs:
            return self._program.run
        from backend_pytorch.graphs import CapturedRuns

        return CapturedRuns(self._program, self.model.name).run

    def _make_plain(self) -> PlainRun | None:
        """Return a PlainRun, or None if it cannot run the model.

        It cannot on GPUs, with batch_input or batch_output, for BYTES or BF16, for inputs without a
        dimension, and for a program that takes its inputs by name.
        """
        from backend_pytorch.plain import PlainRun

        config = self.model.config
        numbers = PlainRun.can(*self._inputs.values(), *self._outputs.values())
        converts = self._keys or self._scalar_inputs or not numbers
        if self._runs is not None or converts or config.batch_input or config.batch_output:
            return None
        return PlainRun(
            self._program,
            self._input_places,
            self._output_places,
            self._outputs,
            inference=self._inference,
        )

    def begin(self, batch: Batch, done: Callable[[BaseException | None], None]) -> None:
        assert self._runs is not None
        self._runs.begin(batch, done)

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        batch.inputs_ready()
        try:
            if self._plain is not None:
                return self._run_plainly(self._plain, batch)
            with ExitStack() as entered:
                self.enter(entered)
                wanted = self.outputs_of(self._tensors(batch), batch)
                batch.outputs_ready()
                outputs = {name: self._array(name, each, batch) for name, each in wanted.items()}
        except CoreError:
            raise
        except Exception as error:
            raise self.failed(error) from error
        if not self.model.config.batch_output:
            return outputs
        for i, parts in enumerate(scattered(self.model.config, batch, outputs)):
            batch.respond(i, parts)
        return None

    def _run_plainly(self, run: PlainRun, batch: Batch) -> dict[str, np.ndarray]:
        settings.enter(self._torch)
        names = batch.wanted(self._names)
        with run.guard:
            found = run(batch)
            batch.outputs_ready()
            arrays = run.arrays(found, names)
            if arrays is None:
                picked = self._picked(found, names)
                arrays = {name: self._array(name, each, batch) for name, each in picked.items()}
        return arrays

    def enter(self, entered: ExitStack) -> None:
        """Set up torch for a run on the current thread, until `entered` exits."""
        torch = self._torch
        settings.enter(torch)
        entered.enter_context(torch.inference_mode() if self._inference else torch.no_grad())

    def outputs_of(self, tensors: dict[str, Any], batch: Batch) -> dict[str, Any]:
        """Run the program. Return {name: tensor or list of text} of the wanted outputs.

        tensors   inputs by name
        Raises CoreError for an output that does not fit the configuration.
        """
        return self._picked(self._run(self._arguments(tensors)), batch.wanted(self._names))

    def _tensors(self, batch: Batch) -> dict[str, Any]:
        given = {name: batch[name] for name in batch}
        if self.model.config.batch_input:
            given.update(batch_inputs(self.model.config, batch))
        for name in self._scalar_inputs & given.keys():
            given[name] = given[name].reshape(())
        return {name: self._tensor(name, array, batch) for name, array in given.items()}

    def _arguments(self, tensors: dict[str, Any]) -> list[Any] | dict[str, Any]:
        if self._keys:
            return tensors
        arguments = [port.default for port in self._program.takes or ()]
        for name, tensor in tensors.items():
            arguments[self._input_places[name]] = tensor
        return arguments

    def _tensor(self, name: str, array: np.ndarray, batch: Batch) -> Any:
        dtype = self._inputs[name]
        if dtype is dtypes.BYTES:
            return texts_of(array, name, batch)
        from backend_pytorch.tensors import tensor_of

        return tensor_of(array, dtype, writes=self._program.writes_inputs)

    def _picked(self, found: list[Any] | dict[str, Any], names: list[str]) -> dict[str, Any]:
        """Return {name: result} of the named outputs among all results `found`.

        A dict that lacks one of the names is used in its order. Raises CoreError for an output that is not
        there or has another type or datatype than in the configuration.
        """
        if isinstance(found, dict) and all(name in found for name in names):
            picked = {name: found[name] for name in names}
        else:
            results = list(found.values()) if isinstance(found, dict) else found
            picked = {name: self._result(results, name) for name in names}
        for name, value in picked.items():
            self._check(name, value)
        return picked

    def _result(self, results: list[Any], name: str) -> Any:
        index = self._output_places[name]
        if not results and self._outputs[name] is dtypes.BYTES and len(self._names) == 1:
            return results  # an empty List[str] looks like no outputs
        if index >= len(results):
            raise invalid(
                f"The output {name} in the model configuration refers to an output index which doesn't "
                f"exist. This model has {len(results)} outputs"
            )
        return results[index]

    def _check(self, name: str, value: Any) -> None:
        """Check type and datatype of an output.

        Raises CoreError(INTERNAL) if it is neither a tensor nor text, and CoreError(INVALID) for another
        datatype than in the configuration.
        """
        expected = self._outputs[name]
        if isinstance(value, self._torch.Tensor):
            given = datatype_of(value.dtype)
            shown = given.config_name if given else str(value.dtype)
        elif isinstance(value, list) and all(isinstance(each, str) for each in value):
            given, shown = dtypes.BYTES, dtypes.BYTES.config_name
        else:
            raise internal(
                f"PyTorch execute failure: output '{name}' must be of type Tensor or List[str], model "
                f"'{self.model.name}' gave a {type(value).__name__}"
            )
        if given is not expected:
            raise invalid(
                f"configuration expects datatype {expected.config_name} for output '{name}', model "
                f"provides {shown} (model '{self.model.name}'); change data_type in config.pbtxt, or let the "
                "model convert it"
            )

    def _array(self, name: str, value: Any, batch: Batch) -> np.ndarray:
        from backend_pytorch.tensors import array_of, array_of_text

        if isinstance(value, list):
            found = array_of_text(value)
            if batch.signature.max_batch_size and self._text_dims.get(name) == (1,):
                return found.reshape(-1, 1)
            return found
        found = array_of(value, copy=self._program.keeps_outputs)
        # Clients see a scalar as [1], unless the configuration has a `reshape`.
        return found if found.ndim or name in self._scalars else found.reshape(1)

    def failed(self, error: BaseException) -> CoreError:
        """Return the error for core for an exception of a run; Fatal if the device is broken.

        If a GPU is out of memory, also free the memory that torch keeps.
        """
        text = first_line(error)
        if type(error).__name__ == "AcceleratorError" or "CUDA error" in text:
            return Fatal(
                f"PyTorch execute failure: {text}; instance '{self.name}' of model '{self.model.name}' on "
                f"{self.device} leaves service, as no later run survives an error of the device"
            )
        if type(error).__name__ == "OutOfMemoryError":
            self._torch.cuda.empty_cache()
        return execute_failure(self.model.name, error)

    def close(self) -> None:
        """Complete the batches on GPUs, and release the program. The model keeps a program that is shared."""
        if self._runs is not None:
            self._runs.close()
        self._program = self._runs = self._plain = self._run = None  # type: ignore[assignment]


def _datatypes(config: Any, names: list[str]) -> dict[str, Any]:
    """Return {name: datatype} of inputs or outputs of the program, in the order of `names`."""
    sequence = config.sequence_batching
    numbers = {io.name: io.data_type for io in (*config.input, *config.output)}
    for each in config.batch_input:
        numbers.update(dict.fromkeys(each.target_name, each.data_type))
    for state in sequence.state:
        numbers.setdefault(state.input_name, state.data_type)
        numbers.setdefault(state.output_name, state.data_type)
    for control in sequence.control_input:
        numbers[control.name] = _control_datatype(control)
    return {name: dtypes.BY_NUMBER[numbers[name]] for name in names}


def _control_datatype(control: Any) -> int:
    for each in control.control:
        for values, dtype in (
            (each.int32_false_true, dtypes.INT32),
            (each.fp32_false_true, dtypes.FP32),
            (each.bool_false_true, dtypes.BOOL),
        ):
            if values:
                return dtype.number
        if each.data_type:
            return int(each.data_type)
    return dtypes.FP32.number


def texts_of(array: np.ndarray, name: str, batch: Batch) -> list[str]:
    """Convert bytes to str. A request whose bytes are not UTF-8 fails, and its text becomes empty."""
    from backend_pytorch.tensors import text_of

    try:
        return text_of(array)
    except UnicodeDecodeError:
        pass
    found: list[str] = []
    for i, request in enumerate(batch.requests):
        elements = request.inputs[name].array
        try:
            found += text_of(elements)
        except UnicodeDecodeError as error:
            found += [""] * elements.size
            batch.fail(
                i,
                invalid(
                    f"input '{name}' of model '{batch.signature.name}' goes to a List[str], and its bytes "
                    f"are no UTF-8: {error.reason} at byte {error.start}"
                ),
            )
    return found
