"""TensorFlow, imported with fewer messages: `tf`, and its interface of version 1, `v1`.

Sessions are of that interface. A run takes a fifth of the time of a function of TensorFlow 2, and each
session has its own settings, as Triton's parameters want it. They run the graphs of both versions.
"""

from __future__ import annotations

import logging
import os
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # no notes about instructions of the processor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own use of numpy
    import tensorflow as tf
    from tensorflow.core.protobuf.config_pb2 import CallableOptions

tf.get_logger().setLevel(logging.ERROR)

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)

__all__ = ["CallableOptions", "tf", "v1"]
