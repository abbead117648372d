"""The rooms a request walks through, from admission to its reply.

    admit ─► batching (queue, batcher) ─► instances (gather, execute) ─► answers (split, delivery) ─► Reply

`chain` puts them together for one model version, once, at load. `sequence` and `ensemble` are the other
schedulers.
"""

from core.pipeline.chain import Chain, open_chain

__all__ = ["Chain", "open_chain"]
