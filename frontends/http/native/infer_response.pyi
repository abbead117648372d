from core.response import InferenceResponse
from core.tensor import Buffer, Tensor
from frontends.http.native.infer_request import OutputForm

def write(response: InferenceResponse, form: OutputForm) -> tuple[int, list[Buffer]]:
    """The body as buffers to be sent one after another: the JSON, then the binary outputs.

    Returns the size of the JSON, 0 if nothing follows it, and the buffers. Large outputs in JSON are
    buffers of their own, so the JSON may be several. Of outputs in shared memory there are no bytes in
    them. Raises CoreError(INVALID) for an FP16 or BF16 output that is wanted in JSON, ValueError for a
    tensor whose bytes are not those of its shape.
    """

def write_at_once(response: InferenceResponse, form: OutputForm) -> tuple[int, list[Buffer]]:
    """Write an answer as `write` does. Raises as `write`, and TakesLong of frontends.http.background."""

def write_data(tensor: Tensor) -> bytes:
    """The elements as a flat JSON array in row-major order.

    Floats have the fewest digits that give the same value back, a point or an exponent; NaN, Infinity
    and -Infinity are written as such. BYTES are strings; bytes that are no UTF-8 are written as they
    are. Raises what `write` raises. Large tensors are written without the GIL.
    """
