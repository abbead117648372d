from collections.abc import Set

from core.request import InferenceRequest
from core.tensor import Buffer
from frontends.shared.memory import SharedMemoryRegions

COPIED_BYTES: int  # a binary tensor of more is a view into the body

class OutputForm:
    """The form of each output in a response: JSON, base64 in JSON, binary after the JSON, or shared memory.

    default   whether outputs that are not in `listed` are binary
    listed    output → whether it is binary
    placed    outputs in shared memory: the response only describes them
    encoded   outputs in base64; None if there are none

    Do not change a form that `read` returns: several requests may share it. If the request lists its outputs,
    the form is not defined for other outputs.
    """

    default: bool
    listed: dict[str, bool]
    placed: Set[str]
    encoded: Set[str] | None

    def __init__(
        self,
        default: bool = False,
        listed: dict[str, bool] | None = None,
        placed: Set[str] | None = None,
        encoded: Set[str] | None = None,
    ) -> None: ...
    def binary(self, output: str) -> bool:
        """Return `listed[output]`, or `default` for another output; True for binary. Ignores `placed`."""

def read(
    model: str,
    version: int,
    body: Buffer,
    json_size: int,
    most_bytes: int,
    regions: SharedMemoryRegions,
) -> tuple[InferenceRequest, OutputForm] | None:
    """Return the request in a body, and the form of its outputs; None if `parse_document` must parse it.

    The result is None for every error, and for valid requests in a rare form, such as repeated members, more
    than 100 levels of lists or objects, or a content type. `parse_document` then raises or accepts.

    body        contiguous; binary tensors of more than COPIED_BYTES are views and keep it alive
    json_size   size of the JSON at its start in bytes
    most_bytes  largest tensor in JSON, in bytes of its wire form, which the tensor owns
    Large JSON is read without the GIL; no other thread may write to the body meanwhile.
    """
