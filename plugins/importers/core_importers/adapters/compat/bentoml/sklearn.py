"""Estimators of scikit-learn in the store."""

from bentoml.models import get, saved

__all__ = ["get", "load_model"]


def load_model(bento_model):
    import joblib

    return joblib.load(saved(bento_model))
