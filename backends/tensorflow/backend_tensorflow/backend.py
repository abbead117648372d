"""Backend and Model: a SavedModel or GraphDef, and the sessions of its instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backend_tensorflow.check import check
from backend_tensorflow.complete import complete
from backend_tensorflow.files import model_files
from backend_tensorflow.installed import import_tensorflow
from backend_tensorflow.instance import TensorFlowInstance
from backend_tensorflow.saved_model import read_signature
from backend_tensorflow.settings import (
    INIT_OPS_FILE,
    KEYS,
    PARAMETERS,
    ServerSettings,
    Settings,
    server_settings_of,
    settings_of,
)
from backend_tensorflow.sharing import SharedSessions
from backend_tensorflow.tensors import Ports
from core.backend import Backend, Device, Model

if TYPE_CHECKING:
    from backend_tensorflow.session import Session


class TensorFlowModel(Model):
    """One model version.

    ports      inputs and outputs
    sessions   of its instances
    """

    settings: Settings
    ports: Ports
    sessions: SharedSessions

    def load(self) -> None:
        """Read the signature and compare it with the configuration. The first instance loads the graph.

        Raises CoreError if the model cannot be read, or does not fit the configuration.
        """
        import_tensorflow(self.name)
        self.settings = settings_of(self.config)
        self._server_settings: ServerSettings = server_settings_of(self.backend.config)
        self._files, self._is_saved_model = model_files(self.config, self.path)
        self._tags: tuple[str, ...] = ()
        if self._is_saved_model:
            signature = read_signature(self._files, self.settings, self.name)
            self._tags, self.ports = signature.tags, signature.ports
        else:
            from backend_tensorflow.graph_def import read_graph_ports

            self.ports = read_graph_ports(self._files, self.config)
        check(self.config, self.ports)
        self.sessions = SharedSessions(self._session, self.settings.sharing)

    def _session(self, device: Device) -> Session:
        """Return a new session with the model on a device. Raises CoreError if it cannot be loaded."""
        from backend_tensorflow.session import Session
        from backend_tensorflow.session_options import place_of, session_options

        options = session_options(self.config, self.settings, self._server_settings, device)
        place = place_of(device)
        if self._is_saved_model:
            made = Session.of_saved_model(self._files, self._tags, options, place, self.name)
        else:
            made = Session.of_graph_def(self._files, options, place, self.name)
        try:
            file = self.path / (self.settings.init_ops_file or INIT_OPS_FILE)
            if self.settings.init_ops_file or file.exists():
                made.run_operators(file, self.name)
        except BaseException:
            made.close()
            raise
        return made


backend = Backend(
    model=TensorFlowModel,
    instance=TensorFlowInstance,
    complete=complete,
    instances={"CPU": 1, "GPU": 1},
    known_parameters=PARAMETERS,
    known_settings=KEYS,
)
