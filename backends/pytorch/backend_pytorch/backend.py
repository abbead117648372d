"""Backend and Model: programs and how instances share them."""

from __future__ import annotations

import logging
import threading
from typing import Any

from backend_pytorch.check import check
from backend_pytorch.complete import complete
from backend_pytorch.files import Format, format_of, is_checkpoint, model_file
from backend_pytorch.framework import import_torch, loading_alone
from backend_pytorch.instance import TorchInstance
from backend_pytorch.parameters import ENVIRONMENT, KNOWN, MODEL_CLASS, Parameters
from backend_pytorch.program import Program
from backend_pytorch.threads import settings
from backend_pytorch.weights import Weights
from core.backend import Backend, Device, MemoryUsage, Model
from core.errors import unsupported

logger = logging.getLogger("core")


class TorchBackend(Backend):
    """torch in this process.

    Settings (--backend-config=pytorch,…): default-max-batch-size.
    """

    def open(self) -> None:
        """Import torch, and set a default number of threads that leaves a core to the server.

        Raises CoreError(UNAVAILABLE) if torch cannot be imported.
        """
        settings.begin(import_torch())


class TorchModel(Model):
    """One model version. It loads a program when an instance opens.

    ENABLE_WEIGHT_SHARING true: the instances of a device share one program; false: each has its own. Not set:
    they share it if its runs cannot overwrite outputs of earlier runs. Each instance of a module in Python
    has its own module and buffers; the weights are shared unless the setting is false.
    """

    backend: TorchBackend

    @loading_alone()
    def load(self) -> None:
        """Find the file and its kind, and read the parameters, so that errors come before instances open.

        Raises CoreError for a missing file, a file of another kind, or an invalid parameter.
        """
        torch = import_torch()
        self.parameters = Parameters(self.config)
        self.parameters.check()
        cuda = self.config.optimization.cuda
        self.graphs = bool(cuda.graphs)
        if cuda.graph_spec:
            logger.warning(
                "model '%s': optimization.cuda.graph_spec has no effect: backend 'pytorch' captures a graph "
                "for each shape that it runs",
                self.name,
            )
        self._source: Any = None
        if self.config.runtime.endswith(".py"):
            from backend_pytorch.module import ModuleSource, files_of

            if ENVIRONMENT in self.config.parameters:
                logger.warning(
                    "model '%s': EXECUTION_ENV_PATH means nothing to backend 'pytorch', whose %s runs in "
                    "the server's process; backend 'python' has environments",
                    self.name,
                    self.config.runtime,
                )
            self._file, weights = files_of(self.config, self.path)
            if self._file.suffix == ".py":
                wanted = self.parameters.text(MODEL_CLASS)
                self._source = ModuleSource(self._file, weights, self.config, wanted)
        else:
            self._file = model_file(self.config, self.path)
        if self._source is None:
            self._format = format_of(self._file, self.name)
            if self._format is Format.CHECKPOINT:
                raise is_checkpoint(self._file, self.name)
        settings.apply(torch, self.parameters, self.name)
        self._programs: dict[Device, Program] = {}
        self._weights = Weights()
        self._opening = threading.Lock()  # instances open at the same time, each on its own thread

    def program_on(self, device: Device) -> Program:
        """Return the program of an instance on `device`. Thread-safe.

        Raises CoreError if it cannot be loaded there, or if the configuration does not fit it.
        """
        with self._opening:
            first = self._programs.get(device)
            if first is not None and self._source is None:
                return first
            with loading_alone():
                program = self._opened(device, first)
            check(self.config, program)
            self._weights.add(program)
            if self._shares(program):
                self._programs.setdefault(device, program)
            return program

    def _opened(self, device: Device, first: Any) -> Program:
        target = torch_device(device, self.name)
        if self._source is not None:
            shared = None if first is None else first.module
            return self._source.make(target, self.parameters.compile(), shared)  # type: ignore[no-any-return]
        if self._format is Format.TORCHSCRIPT:
            from backend_pytorch.torchscript import open_torchscript

            optimized = not self.parameters.boolean("DISABLE_OPTIMIZED_EXECUTION")
            return open_torchscript(self._file, target, self.name, optimized=optimized)
        if self._format is Format.EXPORTED:
            from backend_pytorch.exported import open_exported

            return open_exported(self._file, target, self.name)
        from backend_pytorch.aoti import open_aoti

        # The instances of the largest group can run the package at once.
        runners = max([1, *(group.count for group in self.config.instance_group)])
        return open_aoti(self._file, target, self.name, runners, captured=self.graphs)

    def _shares(self, program: Program) -> bool:
        if self.graphs and program.kind == "AOTInductor":
            return False  # it is loaded for one thread, which captures it
        asked = self.parameters.boolean("ENABLE_WEIGHT_SHARING")
        if asked is not None:
            return asked
        # A module in Python shares its parameters only, which change in training only.
        return self._source is not None or not program.keeps_outputs

    def memory_usage(self) -> list[MemoryUsage]:
        """Return the memory of the weights. Memory of runs does not count: torch keeps it for all models."""
        return self._weights.usage()

    def unload(self) -> None:
        self._programs = {}
        self._source = None


def torch_device(device: Device, model: str) -> Any:
    """Return the torch.device of an instance; None for KIND_MODEL, which keeps the devices of the file.

    Raises CoreError(UNSUPPORTED) for a GPU that torch cannot use.
    """
    torch = import_torch()
    if device.kind == "MODEL":
        return None
    if device.kind != "GPU":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        reason = "was built without CUDA" if torch.version.cuda is None else "finds no usable GPU"
        raise unsupported(
            f"model '{model}': an instance on {device} needs CUDA, and torch {torch.__version__} {reason}; "
            "install a torch with CUDA (https://pytorch.org/get-started), or use instance_group { kind: "
            "KIND_CPU }"
        )
    if device.id >= torch.cuda.device_count():
        raise unsupported(
            f"model '{model}': an instance on {device}, but torch sees {torch.cuda.device_count()} GPUs; "
            "change gpus of its instance_group, or CUDA_VISIBLE_DEVICES"
        )
    return torch.device("cuda", device.id)


backend = TorchBackend(
    model=TorchModel,
    instance=TorchInstance,
    complete=complete,
    instances={"CPU": 1, "GPU": 1},
    known_parameters=KNOWN,
    known_settings=(),
)
