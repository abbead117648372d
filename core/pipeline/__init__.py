"""The rooms a request walks through, from admission to its reply.

    admit ─► queue ─► batcher ─► worker (gather, execute) ─► split ─► delivery ─► Reply

`chain` puts them together for one model version, once, at load.
"""

from core.pipeline.chain import Chain, open_chain

__all__ = ["Chain", "open_chain"]
