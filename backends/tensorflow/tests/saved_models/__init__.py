"""SavedModels of the usual kinds: each function writes one, and returns a request for it.

Keras 3 and tf.Module write their own. Those of TensorFlow 1, of its estimators and of TensorFlow Hub are
written by hand in the same form, with tf.compat.v1 of TensorFlow 2: none was written by these programs.
"""

from saved_models import keras, modules, version_1
from saved_models.makers import MAKERS

__all__ = ["MAKERS", "keras", "modules", "version_1"]
