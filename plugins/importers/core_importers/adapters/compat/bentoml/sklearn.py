"""Estimators of scikit-learn in the store."""

from bentoml.models import check_trust, get

__all__ = ["get", "load_model"]


def load_model(bento_model):
    import joblib

    return joblib.load(check_trust(bento_model))
