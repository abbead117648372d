"""The routes of OpenAI: chat, completions and models, for every model of the server that produces text.

JSON ─► document ─► prompt, sampling ─► adapter ─► InferenceRequest ─► Reply ─► pieces ─► events or JSON

Nothing but requests and responses of the v2 protocol lies between these routes and a model: adapter.py knows
the tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from frontend_openai.options import OpenAIOptions

if TYPE_CHECKING:
    from core.options import Flags, Options
    from core.server import InferenceServer
    from core.telemetry.metrics.source import MetricSource


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    """Register the flags."""
    parser.add_section(OpenAIOptions)


@core.hookimpl
def core_open_metric_source(options: Options) -> MetricSource | None:
    """Return the metrics of adapters, which the field `model` of these routes names."""
    found = OpenAIOptions.of(options)
    if not (found.allow_openai and found.openai_lora_separator):
        return None
    from frontend_openai.adapter_metrics import AdapterMetrics

    return AdapterMetrics(found.openai_lora_separator)


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Add the routes to the HTTP port."""
    if not OpenAIOptions.of(server.options).allow_openai:
        return
    # Imported here: a command line needs no server library.
    from frontend_openai.routes import add_to

    add_to(server)
