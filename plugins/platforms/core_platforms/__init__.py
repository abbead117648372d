"""Platforms that run containers and send them requests over HTTP, each with paths of its own.

Their paths lead to the services of the v2 protocol in frontends.http. Their contracts are Triton's
(docs/operate/platforms.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from core_platforms.options import SageMakerOptions, VertexAIOptions

if TYPE_CHECKING:
    from core.options import Flags


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    """Register the flags of the platforms."""
    parser.add_section(SageMakerOptions)
    parser.add_section(VertexAIOptions)
