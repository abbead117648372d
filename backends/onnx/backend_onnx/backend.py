"""Backend and Model: sessions and how instances share them."""

from __future__ import annotations

import threading
from typing import Any

import onnxruntime as ort

from backend_onnx.check import check
from backend_onnx.complete import complete
from backend_onnx.graph import Graph, graph_of
from backend_onnx.instance import OnnxInstance
from backend_onnx.options import (
    GLOBAL_THREADS,
    MOST_THREADS,
    PARAMETERS,
    SHARE_SESSION,
    THREAD_COUNTS,
    Parameters,
    session_options,
    shares_threads,
    threads_by_default,
    threads_of,
)
from backend_onnx.providers import CUDA_PARAMETERS, providers_for
from backend_onnx.session import model_file, open_session
from core.backend import Backend, Device, Model
from core.errors import invalid

_INSTANCES_ON_CPU = 2  # Triton's default


class OnnxBackend(Backend):
    """ONNX Runtime in this process.

    Settings (--backend-config=onnxruntime,…): default-max-batch-size, enable-global-threadpool,
    intra_op_thread_count, inter_op_thread_count.
    """

    _has_global_threads = False  # set once per process; ONNX Runtime cannot unset it

    def open(self) -> None:
        """Start the threads that all sessions share, if enable-global-threadpool is set.

        Raises CoreError(INVALID) for an invalid setting.
        """
        if not self.global_threads or OnnxBackend._has_global_threads:
            return
        ort.set_global_thread_pool_sizes(
            self._threads("intra_op_thread_count") or threads_by_default(),
            self._threads("inter_op_thread_count") or threads_by_default(),
        )
        OnnxBackend._has_global_threads = True

    @property
    def global_threads(self) -> bool:
        """True if the sessions of all models share the threads of the process."""
        return OnnxBackend._has_global_threads or shares_threads(self.config)

    def _threads(self, key: str) -> int:
        text = self.config.get(key, "0")
        if (count := threads_of(text)) is None:
            raise invalid(
                f"--backend-config=onnxruntime,{key}={text}: it must be a whole number up to "
                f"{MOST_THREADS}"
            )
        return count


class OnnxModel(Model):
    """One model version. It makes a session for each device and set of cores when an instance opens.

    A session can run several batches at once, so the instances of a device share it and its weights. With
    the parameter share_session "0" each instance has its own session. If the number of threads is set, the
    threads of a session run on the cores of the thread that makes it. Otherwise ONNX Runtime distributes
    them over the whole machine.
    """

    backend: OnnxBackend
    _sessions: dict[tuple[Device, frozenset[int]], tuple[Any, Graph]]

    def load(self) -> None:
        """Find the file and read the settings, so that their errors come before any instance opens.

        Raises CoreError for a missing file or an invalid setting.
        """
        self._file = model_file(self.config, self.path)
        self._shares = Parameters(self.config).boolean(SHARE_SESSION, True)
        self._options = self._options_for(0)
        self._sessions = {}
        self._opening = threading.Lock()  # instances open at the same time, each on its own thread

    def _options_for(self, cores: int) -> Any:
        return session_options(
            self.config, self.path, global_threads=self.backend.global_threads, cores=cores
        )

    def session_on(self, device: Device, cores: frozenset[int]) -> tuple[Any, Graph]:
        """Return the session of an instance on `device`, and its graph.

        cores   cores to which the calling thread is bound; empty for none
        Thread-safe. Raises CoreError if the session cannot be made on the device, or if the configuration
        does not fit the file.
        """
        with self._opening:
            if self._shares and (device, cores) in self._sessions:
                return self._sessions[device, cores]
            options = self._options_for(len(cores)) if cores else self._options
            providers = providers_for(self.config, device)
            session = open_session(self._file, options, providers, self.name)
            graph = graph_of(session)
            check(self.config, graph)
            if self._shares:
                self._sessions[device, cores] = session, graph
            return session, graph

    def unload(self) -> None:
        self._sessions = {}


backend = OnnxBackend(
    model=OnnxModel,
    instance=OnnxInstance,
    complete=complete,
    instances={"CPU": _INSTANCES_ON_CPU, "GPU": 1},
    known_parameters=(*PARAMETERS, *CUDA_PARAMETERS),
    known_settings=(GLOBAL_THREADS, *THREAD_COUNTS),
)
