"""Platforms that run containers and send them requests over HTTP, each with paths of its own.

options.py          their flags, and what Vertex AI sets through the environment
binary.py           binary tensors without headers of ours
default.py          the model for a request that names none
sagemaker.py        the port of Amazon SageMaker
sagemaker_models.py multi-model endpoints there: requests load and unload models
sagemaker_folder.py finds the model in a folder that SageMaker has unpacked
vertex_ai.py        the port of Google's Vertex AI

Their paths lead to the services of the v2 protocol in frontends.http. Their contracts are Triton's
(docs/platforms.md).
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
