"""Backend and Model: what core calls; who shares a session."""

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
    THREAD_COUNTS,
    session_options,
    shares_session,
    shares_threads,
    threads_by_default,
    threads_of,
)
from backend_onnx.providers import CUDA_PARAMETERS, providers_for
from backend_onnx.session import model_file, open_session
from core.backend import Backend, Device, Model
from core.errors import invalid

_INSTANCES_ON_CPU = 2  # as many as Triton starts


class OnnxBackend(Backend):
    """ONNX Runtime in this process.

    Settings (--backend-config=onnxruntime,…): default-max-batch-size, enable-global-threadpool,
    intra_op_thread_count, inter_op_thread_count.
    """

    _has_global_threads = False  # written once in a process; ONNX Runtime cannot take it back

    def open(self) -> None:
        """Start the threads that all sessions share, if they are to.

        Raises CoreError(INVALID) for a number of threads that is none.
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
    """One version. Its sessions are made when an instance asks, one for each device and set of cores.

    A session may run several batches at once, so instances of a device share it and its weights;
    parameter share_session "0" gives each its own. A session's threads run on the cores of the thread
    that makes it, if their number is given; left to itself ONNX Runtime spreads them over the machine.
    """

    backend: OnnxBackend
    _sessions: dict[tuple[Device, frozenset[int]], tuple[Any, Graph]]

    def load(self) -> None:
        """Find the file and read the settings; both refuse before an instance is made."""
        self._file = model_file(self.config, self.path)
        self._shares = shares_session(self.config)
        self._options = self._options_for(0)
        self._sessions = {}
        self._opening = threading.Lock()  # instances open at the same time, each on its thread

    def _options_for(self, cores: int) -> Any:
        return session_options(
            self.config, self.path, global_threads=self.backend.global_threads, cores=cores
        )

    def session_on(self, device: Device, cores: frozenset[int]) -> tuple[Any, Graph]:
        """The session of an instance on `device`, and what it takes and gives. Any thread, but one that
        is bound to `cores` if there are any.

        Raises CoreError if it cannot be made there, or the configuration does not fit the file.
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
