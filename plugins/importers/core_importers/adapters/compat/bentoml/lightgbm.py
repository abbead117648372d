"""Boosters of LightGBM in the store."""

from bentoml.models import get, saved

__all__ = ["get", "load_model"]


def load_model(bento_model):
    import lightgbm

    return lightgbm.Booster(model_file=saved(bento_model))
