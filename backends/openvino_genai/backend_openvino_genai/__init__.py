"""Run language models with OpenVINO GenAI: its folders, and GGUF files.

The import of openvino_genai happens when the first model loads.
"""

from backend_openvino_genai.model import backend

__all__ = ["backend"]
