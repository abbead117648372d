"""Pickled objects in the store."""

from bentoml.models import check_trust, get

__all__ = ["get", "load_model"]


def load_model(bento_model):
    import cloudpickle

    with open(check_trust(bento_model), "rb") as file:
        return cloudpickle.load(file)
