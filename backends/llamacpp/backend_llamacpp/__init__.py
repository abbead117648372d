"""Run language models in GGUF files with llama.cpp: text, embeddings and scores.

The import of xllamacpp happens when the first model loads.
"""

from backend_llamacpp.model import backend

__all__ = ["backend"]
