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
    from core.options import Flags
    from core.server import InferenceServer


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    """Register the flags."""
    parser.add_section(OpenAIOptions)


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Add the routes to the HTTP port."""
    if not OpenAIOptions.of(server.options).allow_openai:
        return
    # Imported here: a command line needs no server library.
    from frontend_openai.routes import add_to

    add_to(server)
