"""States and metadata of models as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import invalid
from core.request import NEWEST
from frontend_tfserving.rest.status import state_of, versions_of
from frontend_tfserving.rpc import messages
from frontend_tfserving.signatures import SIGNATURE, method_of, signatures_of, version_of
from frontend_tfserving.types import NUMBERS, shape_of

if TYPE_CHECKING:
    from core.config import InputSpec, OutputSpec, Signature
    from core.server import InferenceServer

_FIELD = "signature_def"
_UNKNOWN = 2  # gRPC's code


def chosen(server: InferenceServer, spec: messages.ModelSpec) -> tuple[str, int]:
    """Return name and version of a model. Raises CoreError if the label of a version is unknown."""
    if not spec.name:
        raise invalid("model_spec has no name")
    version = spec.version.value if spec.HasField("version") else NEWEST
    return spec.name, version_of(server, spec.name, version, spec.version_label)


def spec_of(asked: messages.ModelSpec, version: int) -> messages.ModelSpec:
    """Return the ModelSpec of a response from that of the request."""
    return messages.ModelSpec(
        name=asked.name,
        version=messages.Int64Value(value=version),
        signature_name=asked.signature_name or SIGNATURE,
    )


def status_of(
    server: InferenceServer, request: messages.GetModelStatusRequest
) -> messages.GetModelStatusResponse:
    """Return the state of each version. Raises CoreError(NOT_FOUND) without a version."""
    found = messages.GetModelStatusResponse()
    for each in versions_of(server, *chosen(server, request.model_spec)):
        entry = found.model_version_status.add(
            version=each.version, state=messages.ModelVersionStatus.State.Value(state_of(each))
        )
        entry.status.error_code = _UNKNOWN if each.failed else 0
        entry.status.error_message = each.reason if each.failed else ""
    return found


def metadata_of(
    server: InferenceServer, request: messages.GetModelMetadataRequest
) -> messages.GetModelMetadataResponse:
    """Return the signatures of a model. Raises CoreError(INVALID) for another field of the metadata."""
    for name in request.metadata_field:
        if name != _FIELD:
            raise invalid(f"the metadata of a model have no field '{name}'; they have {_FIELD}")
    model, version = chosen(server, request.model_spec)
    answering = server.models.signature(model, version).version
    signatures = messages.SignatureDefMap()
    for name, signature in signatures_of(server, model, version).items():
        signatures.signature_def[name].CopyFrom(_described(signature, method_of(server, signature)))
    found = messages.GetModelMetadataResponse(model_spec=spec_of(request.model_spec, answering))
    found.metadata[_FIELD].type_url = "type.googleapis.com/tensorflow.serving.SignatureDefMap"
    found.metadata[_FIELD].value = signatures.SerializeToString()
    return found


def _described(signature: Signature, method: str) -> messages.SignatureDef:
    found = messages.SignatureDef(method_name=method)
    for spec in signature.inputs.values():
        found.inputs[spec.name].CopyFrom(_info(signature, spec))
    for output in signature.outputs.values():
        found.outputs[output.name].CopyFrom(_info(signature, output))
    return found


def _info(signature: Signature, spec: InputSpec | OutputSpec) -> messages.TensorInfo:
    found = messages.TensorInfo(name=f"{spec.name}:0", dtype=NUMBERS[spec.dtype].number)
    for size in shape_of(signature, spec):
        found.tensor_shape.dim.add(size=size)
    return found
