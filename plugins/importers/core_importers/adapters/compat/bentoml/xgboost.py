"""Models of xgboost in the store: a Booster, or the class of its scikit-learn interface that was saved."""

from pathlib import Path

from bentoml.models import Model, get, saved

__all__ = ["get", "load_model"]


def load_model(bento_model):
    import xgboost
    import yaml

    model = bento_model if isinstance(bento_model, Model) else get(bento_model)
    text = Path(model.path_of("model.yaml")).read_text("utf-8")
    options = yaml.safe_load(text).get("options") or {}
    found = getattr(xgboost, options.get("model_class") or "Booster")()
    found.load_model(saved(model))
    return found
