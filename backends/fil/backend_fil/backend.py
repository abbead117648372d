"""Backend and Model: one forest for all instances of a version."""

from __future__ import annotations

import threading
from typing import Any

import treelite

from backend_fil.answers import OUTPUT, SHAP, Answers, answers_of, check, row_shape, width_of
from backend_fil.complete import complete
from backend_fil.files import load, model_file
from backend_fil.gpu import GpuForest, open_on_gpu
from backend_fil.instance import FilInstance
from backend_fil.native.forest import Forest
from backend_fil.reading import (
    DEEPEST_SHAP,
    Description,
    describe,
    read_forest,
    threshold_of,
)
from backend_fil.settings import PARAMETERS, Settings, settings_of, warn
from backend_fil.workers import Workers, threads_by_default
from core.backend import Backend, Device, MemoryUsage, Model
from core.errors import unsupported


class FilModel(Model):
    """One model version. Its forest does not change after load, so all instances share it.

    forest        on the CPU. GPU instances use it for small batches and Shapley values
    threshold     probability above which class 1 is predicted, on every device
    row_shapes    output name → output shape of one row
    features      values of an input row
    """

    forest: Forest
    settings: Settings
    answers: Answers
    threshold: float
    row_shapes: dict[str, tuple[int, ...]]
    features: int
    _treelite: treelite.Model | None
    _workers: Workers | None

    def load(self) -> None:
        """Read the file and build the forest. Raises CoreError with the file, the reason and advice."""
        self._workers = None
        self._opening = threading.Lock()  # instances open at the same time, each on its own thread
        warn(self.config)
        self.settings = settings_of(self.config)
        path, kind = model_file(self.config, self.path, self.settings)
        allowed = self.settings.allow_unknown_field
        model = load(path, kind, self.name, allow_unknown_field=allowed, tell=True)
        description = describe(model, self.name)
        check(self.config, description, self.settings)
        outputs: dict[str, Any] = {io.name: io for io in self.config.output}
        batches = bool(self.config.max_batch_size)
        dims = {
            name: tuple(io.reshape.shape if io.HasField("reshape") else io.dims)
            for name, io in outputs.items()
        }
        width = width_of(dims[OUTPUT], batches) if OUTPUT in dims else None
        self.answers = answers_of(self.settings, description, width)
        self.row_shapes = {
            name: _filled(row_shape(each, batches), name, self.answers, description)
            for name, each in dims.items()
        }
        self.features = description.features
        self.threshold = threshold_of(model, self.config, self.settings)
        self.forest = read_forest(
            model,
            description,
            self.name,
            link=self.answers.link,
            form=self.answers.form,
            threshold=self.threshold,
            with_cover=SHAP in outputs,
        )
        if SHAP in outputs and self.forest.depth > DEEPEST_SHAP:
            raise unsupported(
                f"model '{self.name}': a tree of depth {self.forest.depth} is too deep for '{SHAP}', "
                f"which has a bound of {DEEPEST_SHAP}; take that output out of config.pbtxt, or train "
                f"with a depth of at most {DEEPEST_SHAP}"
            )
        on_gpu = any(group.kind != group.KIND_CPU for group in self.config.instance_group)
        self._treelite = model if on_gpu else None

    def workers(self, cores: frozenset[int]) -> Workers:
        """Return the threads that share large batches. All instances use the same ones. Thread-safe.

        cores   cores of the caller's host policy; the default number of threads comes from the first call's
        """
        with self._opening:
            if self._workers is None:
                self._workers = Workers(self.settings.threads or threads_by_default(cores))
            return self._workers

    def on_gpu(self, device: Device) -> GpuForest:
        """Return a copy of the forest on a GPU. Raises CoreError if that is not possible."""
        # A change of instance groups may add the instance after the load.
        if self._treelite is None:
            path, kind = model_file(self.config, self.path, self.settings)
            allowed = self.settings.allow_unknown_field
            self._treelite = load(path, kind, self.name, allow_unknown_field=allowed)
        return open_on_gpu(
            self._treelite, device, self.settings, self.answers, self.threshold, self.name
        )

    def memory_usage(self) -> list[MemoryUsage]:
        """Return the memory of the forest on the CPU. nvForest does not report its memory on a GPU."""
        return [MemoryUsage("CPU", 0, self.forest.nbytes)]

    def unload(self) -> None:
        if self._workers is not None:
            self._workers.close()
        self._treelite = None


def _filled(
    shape: tuple[int, ...], name: str, answers: Answers, description: Description
) -> tuple[int, ...]:
    """Return `shape`, that of one row of output `name`; if it has a -1, the shape of the forest's values."""
    if -1 not in shape:
        return shape
    return description.shap_dims if name == SHAP else (answers.width,)


backend = Backend(
    model=FilModel,
    instance=FilInstance,
    complete=complete,
    instances={"CPU": 1, "GPU": 1},
    known_parameters=PARAMETERS,
    known_settings=(),
)
