"""Pickled objects in the store."""

from bentoml.models import get, saved

__all__ = ["get", "load_model"]


def load_model(bento_model):
    import cloudpickle

    with open(saved(bento_model), "rb") as file:
        return cloudpickle.load(file)
