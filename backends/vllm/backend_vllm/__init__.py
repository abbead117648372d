"""Run language models with vLLM: text, embeddings and scores, from folders of Triton's vLLM backend.

The import of vllm happens when the first model loads.
"""

from backend_vllm.model import backend

__all__ = ["backend"]
