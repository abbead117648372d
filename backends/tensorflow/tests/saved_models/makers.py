"""The functions that write SavedModels, by their names, and the requests that they return."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from backend_tensorflow.framework import tf

RNG = np.random.default_rng(7)
MAKERS: dict[str, Callable] = {}


@dataclass
class Request:
    """Inputs for a signature of a SavedModel.

    key    of the signature
    tags   of the graph
    more   text for config.pbtxt
    """

    inputs: dict[str, np.ndarray]
    key: str = "serving_default"
    tags: tuple[str, ...] = ("serve",)
    more: str = ""


def maker(function):
    MAKERS[function.__name__] = function
    return function


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def texts(*words):
    return np.array([word.encode() for word in words], object)


def spec(dtype, *shape):
    return tf.TensorSpec(list(shape), dtype)
