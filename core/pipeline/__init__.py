"""The way of a request through one model version, from admission to its reply.

    admit ─► batching (queue, batcher) ─► instances (gather, execute) ─► answers (split, delivery) ─► Reply

`chain` composes it once, when the version loads. `sequence` and `ensemble` contain the other schedulers.
"""

from core.pipeline.chain import Chain, open_chain
from core.pipeline.services import ChainServices

__all__ = ["Chain", "ChainServices", "open_chain"]
