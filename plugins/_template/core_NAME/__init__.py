"""The plugin NAME: core finds it by its entry point and calls its hooks."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")

# core/hookspecs.py documents the call, the thread, the arguments and the result of each hook:
#
# options of the command line     core_add_options
# the server                      core_workers_starting, core_server_starting, core_server_stopping
# model repositories              core_open_repository, core_open_repository_agent
# the response cache              core_open_cache
# metrics and traces              core_open_metric_source, core_open_trace_exporter
# models                          core_complete_config, core_layers, core_batch_rule, core_model_changed
# executions and errors           core_batch_done, core_failed


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Run once per server, on the event loop, before frontends open and models load. Must not block."""
    logger.info("NAME: the server starts, control mode '%s'", server.options.model_control_mode)
