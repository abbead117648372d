"""Signatures as clients of TensorFlow Serving see them: their names, and vectors where a row is one value.

request ─► version_of, checked_signature ─► as_rows ─► model ─► as_vectors ─► response
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.errors import CoreError, Kind, invalid, not_found, unsupported
from core.tensor import Tensor

if TYPE_CHECKING:
    from core.config import InputSpec, ModelConfig, OutputSpec, Signature
    from core.server import InferenceServer

SIGNATURE = "serving_default"
"""The signature that every model has here: its inputs and outputs."""

LABEL = "version_label."
"""Start of the parameters of a model that give labels to versions: version_label.stable → 3."""

OTHER = "signature."
"""Start of the parameters of a model that name models for other signatures: signature.scores → m_scores."""

EXPLAINER = "explainer"
"""The parameter of a model that names the model for KServe's explain."""

PARAMETERS = (f"{LABEL}*", f"{OTHER}*", EXPLAINER)
"""Those that are read here, as patterns."""

_KEY = "TF_SIGNATURE_DEF"  # the parameter of backend-tensorflow that names the signature of a SavedModel

_METHOD = "TF_METHOD_NAME"  # its parameter with the method of the signature
PREDICT = "tensorflow/serving/predict"


def version_of(server: InferenceServer, model: str, version: int, label: str) -> int:
    """Return the number of a version: that of the label, if there is one, else `version`.

    Raises CoreError(NOT_FOUND) for a label that the model does not have.
    """
    if not label:
        return version
    config = server.models.config(model)
    found = config.parameters.get(LABEL + label)
    number = "" if found is None else found.string_value
    if not number.isdecimal():
        raise not_found(f"model '{model}' has no version with the label '{label}'{_labels(config)}")
    return int(number)


def _labels(config: ModelConfig) -> str:
    known = sorted(name.removeprefix(LABEL) for name in config.parameters if name.startswith(LABEL))
    if known:
        return f"; it has {', '.join(known)}"
    return f"; give one with the parameter '{LABEL}<label>' in config.pbtxt"


def explainer_of(server: InferenceServer, model: str) -> str:
    """Return the model that explains a model's answers. Raises CoreError(UNSUPPORTED) if there is none."""
    found = server.models.config(model).parameters.get(EXPLAINER)
    if found is None or not found.string_value:
        raise unsupported(
            f"model '{model}' has no explainer; name a model with the parameter '{EXPLAINER}' in config.pbtxt"
        )
    return str(found.string_value)


def signature_names(server: InferenceServer, model: str, version: int) -> dict[str, str]:
    """Return the names of a model's signatures, and the model that answers for each.

    The model itself answers for serving_default, and for the signature that it takes from a SavedModel.
    """
    found = {SIGNATURE: model}
    for name, entry in server.models.config(model, version).parameters.items():
        if name == _KEY and entry.string_value:
            found[entry.string_value] = model
        elif name.startswith(OTHER):
            found[name.removeprefix(OTHER)] = entry.string_value
    return found


def method_of(server: InferenceServer, signature: Signature) -> str:
    """Return the method for which a signature was exported, as its backend knows it; else that of predict."""
    found = server.models.config(signature.name, signature.version).parameters.get(_METHOD)
    return (found.string_value if found is not None else "") or PREDICT


def signatures_of(server: InferenceServer, model: str, version: int) -> dict[str, Signature]:
    """Return the signatures of a model version by name, without those whose model cannot answer now.

    Raises CoreError if the model itself cannot.
    """
    own = server.models.signature(model, version)
    found = {}
    for name, other in signature_names(server, model, version).items():
        try:
            found[name] = own if other == model else server.models.signature(other, own.version)
        except CoreError as error:
            if error.kind not in (Kind.NOT_FOUND, Kind.UNAVAILABLE):
                raise
    return found


def checked_signature(
    server: InferenceServer, model: str, version: int, name: str
) -> tuple[Signature, int]:
    """Return the signature of a model version, and the version to ask.

    Another model may answer for the signature, in the same version.

    name   of the signature in the request; "" for the default
    Raises CoreError(INVALID) for a name that the model does not have, CoreError(NOT_FOUND) if the other model
    does not have the version, and CoreError(UNSUPPORTED) for a decoupled model.
    """
    found = server.models.signature(model, version)
    if name not in ("", SIGNATURE):
        there = signature_names(server, model, version)
        if name not in there:
            raise invalid(f"model '{model}' has no signature '{name}'; it has {', '.join(there)}")
        if there[name] != model:
            model, version = there[name], found.version
            found = server.models.signature(model, version)
    if found.decoupled:
        raise unsupported(
            f"model '{model}' is decoupled: it may answer several times, which this API does not know; use "
            "generate_stream, or a stream of gRPC"
        )
    return found, version


def is_vector(signature: Signature, spec: InputSpec | OutputSpec) -> bool:
    """Return whether a batch of the tensor is a vector for the model, with one value for each row.

    Clients of the v2 protocol send and get [rows, 1] for it, those of TensorFlow Serving [rows].
    """
    return bool(signature.max_batch_size) and spec.dims == (1,) and spec.reshape == ()


def sends_vectors(signature: Signature, inputs: Mapping[str, Tensor]) -> bool:
    """Return whether an input [rows, 1] of the model is a vector in the request.

    TensorFlow's graphs of single values take vectors too, and answer with vectors, whatever their signature
    says of the shape; half_plus_two of TensorFlow Serving's documentation is such a model.
    """
    return any(
        len(tensor.shape) == 1
        and (spec := signature.inputs.get(name)) is not None
        and _is_one(signature, spec)
        and not is_vector(signature, spec)
        for name, tensor in inputs.items()
    )


def _is_one(signature: Signature, spec: InputSpec | OutputSpec) -> bool:
    """Return whether a row of the tensor is one value."""
    return bool(signature.max_batch_size) and spec.dims == (1,)


def as_rows(signature: Signature, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the inputs with the shape [rows, 1] for vectors of one value in each row."""
    found = dict(inputs)
    for name, tensor in inputs.items():
        spec = signature.inputs.get(name)
        if spec is not None and len(tensor.shape) == 1 and _is_one(signature, spec):
            found[name] = tensor.reshaped((*tensor.shape, 1))
    return found


def as_vectors(
    signature: Signature, outputs: Mapping[str, Tensor], asked: bool = False
) -> dict[str, Tensor]:
    """Return the outputs with the shape [rows] for vectors.

    asked   whether all outputs with one value in each row are vectors; see `sends_vectors`
    """
    found = dict(outputs)
    for name, tensor in outputs.items():
        spec = signature.outputs[name]
        if is_vector(signature, spec) or (asked and _is_one(signature, spec)):
            found[name] = tensor.reshaped(tensor.shape[:1])
    return found
