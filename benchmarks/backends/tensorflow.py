"""TensorFlow: the MLP of the other benchmarks, as a SavedModel with variables."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.backends.case import Case
from benchmarks.models import mlp
from benchmarks.models.sample import Arrays

_FILE = "model.savedmodel"
_SIGNATURE = "serving_default"


class TensorFlowMlp(Case):
    name = "tensorflow_mlp"
    backend = "tensorflow"
    package = "tensorflow"
    more = "".join(
        f'parameters {{ key: "TF_NUM_{kind}_THREADS" value: {{ string_value: "1" }} }}\n'
        for kind in ("INTRA", "INTER")
    )
    width, results = mlp.SIZES[0], mlp.SIZES[-1]
    most = 1024

    def write(self, folder: Path) -> None:
        tf: Any = importlib.import_module("backend_tensorflow.framework").tf
        module = tf.Module()
        module.layers = [tuple(map(tf.Variable, each)) for each in mlp.layers()]

        def network(rows: Any) -> Any:
            *hidden, last = module.layers
            for weights, bias in hidden:
                rows = tf.nn.relu(rows @ weights + bias)
            return {self.outputs: rows @ last[0] + last[1]}

        given = tf.TensorSpec([None, self.width], tf.float32, name=self.inputs)
        function = tf.function(network, input_signature=[given], autograph=False)
        signatures = {_SIGNATURE: function}
        tf.saved_model.save(module, str(folder / _FILE), signatures=signatures)

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        """Return a callable of a session: a run takes a fifth of the time of the signature's function."""
        v1: Any = importlib.import_module("backend_tensorflow.framework").v1
        options = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        session = v1.Session(graph=v1.Graph(), config=options)
        loaded = v1.saved_model.load(session, ["serve"], str(folder / _FILE))
        signature = loaded.signature_def[_SIGNATURE]
        taken, given = signature.outputs[self.outputs].name, signature.inputs[self.inputs].name
        forward = session.make_callable(taken, [given])

        def run(inputs: Arrays) -> Arrays:
            return {self.outputs: forward(inputs[self.inputs])}

        return run


CASES = [TensorFlowMlp()]
