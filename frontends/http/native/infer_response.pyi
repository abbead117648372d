from core.response import InferenceResponse
from core.tensor import Buffer, Tensor
from frontends.http.native.infer_request import OutputForm

def write(response: InferenceResponse, form: OutputForm) -> tuple[int, list[Buffer]]:
    """Return the body of a response as buffers: the JSON, then the binary outputs.

    The result is (size of the JSON, 0 without binary outputs; buffers). Large outputs in JSON are buffers of
    their own, so that the JSON may have several. Outputs in shared memory have no bytes in the buffers.
    Raises CoreError(INVALID) for an FP16 or BF16 output in JSON, ValueError for a tensor whose size does not
    match its shape.
    """

def write_at_once(response: InferenceResponse, form: OutputForm) -> tuple[int, list[Buffer]]:
    """Return the result of `write`. Raises TakesLong of frontends.http.background for large outputs."""

def write_data(tensor: Tensor) -> bytes:
    """Return the elements as a flat JSON array in row-major order.

    Floats have the fewest digits that parse to the same value, and a point or an exponent; other values are
    NaN, Infinity and -Infinity. BYTES are strings; bytes that are not UTF-8 are written unchanged. Raises
    CoreError and ValueError as `write` does. Large tensors are written without the GIL.
    """
