"""Stands in for the package torchserve: what handlers import from it, without its server.

Written for this project after TorchServe's documented behaviour. Explanations by captum, profiling and
torch.compile by model-config.yaml are not part of it.
"""

import sys

from ts import labels, streaming, timing

__version__ = "0.12.0"

# The names of these modules in torchserve.
sys.modules.update(
    {
        "ts.handler_utils": timing,
        "ts.handler_utils.timer": timing,
        "ts.handler_utils.utils": streaming,
        "ts.protocol": streaming,
        "ts.protocol.otf_message_handler": streaming,
        "ts.utils": labels,
        "ts.utils.util": labels,
    }
)
