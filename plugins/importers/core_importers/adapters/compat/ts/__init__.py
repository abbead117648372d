"""Stands in for the package torchserve: what handlers import from it, without its server.

Written for this project after TorchServe's documented behaviour. Explanations by captum, profiling and
torch.compile by model-config.yaml are not part of it.
"""

__version__ = "0.12.0"
