"""TorchScript in the store."""

from bentoml.models import get, saved

__all__ = ["get", "load_model"]


def load_model(bento_model, device_id="cpu", **options):
    import torch

    return torch.jit.load(saved(bento_model), map_location=device_id)
