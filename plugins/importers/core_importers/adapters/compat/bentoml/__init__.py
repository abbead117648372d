"""Stands in for the package bentoml: what a service imports from it, without its server.

Written for this project after BentoML's documented behaviour: the decorators, validators (which check
nothing here), the models of the store in BENTOML_HOME, and load_model of sklearn, xgboost, lightgbm, onnx,
torchscript and picklable_model.
"""

import contextlib

from bentoml import (
    lightgbm,
    models,
    onnx,
    picklable_model,
    sklearn,
    torchscript,
    validators,
    xgboost,
)

__all__ = [
    "lightgbm", "models", "onnx", "picklable_model", "sklearn", "torchscript", "validators", "xgboost",
]  # fmt: skip
__version__ = "0"


class Context:
    pass


def service(inner=None, /, **options):
    return inner if inner is not None else lambda found: found


def api(func=None, /, **options):
    return func if func is not None else lambda found: found


task = api


def on_startup(func):
    func.__bentoml_startup_hook__ = True
    return func


def on_shutdown(func):
    func.__bentoml_shutdown_hook__ = True
    return func


def on_deployment(func):
    return func


def asgi_app(app, **options):
    return lambda found: found


@contextlib.contextmanager
def importing():
    yield


class _Image:
    """Takes the description of an image for containers; each method returns it."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        return lambda *args, **kwargs: self


class images:
    Image = PythonImage = _Image
