"""Predictors of Paddle Inference: arrays ─► run ─► arrays.  Imports Paddle.

files ─► [PredictorSource] ─► Predictor ─► instance.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from backend_paddle.files import ModelFiles, unreadable
from backend_paddle.framework import inference, paddle
from backend_paddle.settings import Settings
from core.backend import Device
from core.errors import CoreError, invalid

_GPU_POOL_MB = 100  # that Paddle takes of a GPU at first, as in Triton's backend


class Predictor:
    """Runs a program. One thread at a time."""

    def __init__(self, found: Any):
        self._found = found
        self._inputs = {name: found.get_input_handle(name) for name in found.get_input_names()}
        self._outputs = {name: found.get_output_handle(name) for name in found.get_output_names()}

    def run(self, arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return copies of the outputs with these names. Raises errors of Paddle.

        arrays   name → array of the port's datatype, in the machine's byte order
        """
        for name, array in arrays.items():
            self._inputs[name].copy_from_cpu(np.asarray(array, order="C"))
        self._found.run()
        return {name: self._outputs[name].copy_to_cpu() for name in names}


class PredictorSource:
    """Makes the predictors of one version; those of a device share the weights. Thread-safe."""

    def __init__(self, files: ModelFiles, settings: Settings, model: str):
        self._files, self._settings, self._model = files, settings, model
        self._first: dict[tuple[str, int], Any] = {}
        self._making = threading.Lock()

    def predictor(self, device: Device, threads: int) -> Predictor:
        """Return a new predictor. Raises CoreError if Paddle cannot load the program, or lacks the device.

        threads   of one execution on a CPU
        """
        with self._making:
            key = device.kind, device.id
            try:
                if key in self._first:
                    return Predictor(self._first[key].clone())
                found = inference.create_predictor(self._config(device, threads))
                made = Predictor(found)
            except CoreError:
                raise
            except Exception as error:
                raise unreadable(
                    self._files.program,
                    self._model,
                    f"Paddle {paddle.__version__} cannot load it: {text_of(error)}",
                ) from error
            self._first[key] = found
            return made

    def close(self) -> None:
        """Let go of the weights when the last predictor goes."""
        self._first = {}

    def _config(self, device: Device, threads: int) -> Any:
        weights = str(self._files.weights) if self._files.weights.exists() else ""
        found = inference.Config(str(self._files.program), weights)
        if self._files.is_json:  # programs of Paddle 3 need both
            found.enable_new_ir(True)
            found.enable_new_executor(True)
        found.disable_glog_info()
        found.enable_memory_optim()
        found.switch_ir_optim(self._settings.optimize)
        if device.kind == "GPU":
            self._check_gpu(device)
            found.enable_use_gpu(_GPU_POOL_MB, device.id)
            return found
        found.disable_gpu()
        found.set_cpu_math_library_num_threads(threads)
        if self._settings.onednn:
            found.enable_mkldnn()
            found.set_mkldnn_cache_capacity(self._settings.onednn_cache)
        else:
            found.disable_mkldnn()
        return found

    def _check_gpu(self, device: Device) -> None:
        there = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0
        if device.id >= there:
            raise invalid(
                f"unable to load model '{self._model}': this Paddle finds {there} GPUs, the instance has "
                f"GPU {device.id}; install paddlepaddle-gpu, or change instance_group in config.pbtxt"
            )


def text_of(error: BaseException) -> str:
    """Return the text of an error of Paddle in one line, without the trace of its stack."""
    text = str(error).rpartition("Error Message Summary:")[2]
    text = re.sub(r"-{5,}|In user code:", "", text)
    return " ".join(text.split())[:1000] or type(error).__name__
