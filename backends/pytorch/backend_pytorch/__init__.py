"""Run PyTorch models: TorchScript, AOTInductor packages, exported programs, modules in Python.

The import of this package does not import torch, which takes seconds. A broken torch only fails its models.
"""

from backend_pytorch.backend import backend

__all__ = ["backend"]
