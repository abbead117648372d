"""Reports: what a replica says about its server without being asked: metrics, and which models it has loaded.

[Reports] ─┬► RayMetrics ─► dashboard and Prometheus
           └► Serve's controller ─► routers: requests with a model id go to replicas that have the model
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from ray import serve
from ray.serve._private.common import RequestRoutingInfo
from ray.serve.context import _get_global_client
from ray.serve.metrics import Counter, Gauge

from core.errors import CoreError
from core_ray.metrics import RayMetrics

if TYPE_CHECKING:
    import core

logger = logging.getLogger("core")

_PERIOD_S = 1.0
_METRICS_EVERY = 5  # periods; Ray itself reports metrics every 10 seconds


class Reports:
    """Sends the reports of one server from a thread of its own. Create it in the replica."""

    def __init__(self, server: core.Server):
        self._server = server
        self._replica = serve.get_replica_context().replica_id
        self._metrics = RayMetrics(Counter, Gauge)
        self._models: set[str] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="core-ray-reports", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """End the thread, and wait for it."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        periods = 0
        while True:
            try:
                self._send_models()
                if periods % _METRICS_EVERY == 0:
                    self._metrics.write(self._server.metrics())
            except CoreError:  # the server has stopped
                return
            except Exception:
                logger.exception("a report of the replica to Ray has failed")
            periods += 1
            if self._ended.wait(_PERIOD_S):
                return

    def _send_models(self) -> None:
        """Tell Serve which models are loaded, if that has changed."""
        models = {each["name"] for each in self._server.statistics()}
        if models != self._models:
            found = RequestRoutingInfo(
                replica_id=self._replica, multiplexed_model_ids=sorted(models)
            )
            _get_global_client().record_request_routing_info(found)
            self._models = models
