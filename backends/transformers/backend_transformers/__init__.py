"""Run models in the format of Hugging Face with transformers: text, embeddings, scores, classes.

The import of torch and transformers happens when the first model loads.
"""

from backend_transformers.model import backend

__all__ = ["backend"]
