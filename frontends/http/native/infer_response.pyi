from core.response import InferenceResponse
from core.tensor import Buffer, Tensor
from frontends.http.native.infer_request import OutputForm

def write(response: InferenceResponse, form: OutputForm) -> tuple[int, list[Buffer]]:
    """Return (size of the JSON in bytes, or 0 if no output is binary; buffers) of the body of a response.

    The buffers are the JSON, then the binary outputs, which are not copied. A large output in JSON is a
    buffer of its own, so the JSON may have several. Outputs in shared memory are only described. Raises
    CoreError(INVALID) for an FP16 or BF16 output in JSON, ValueError for an output in JSON whose size does
    not match its shape.
    """

def write_at_once(response: InferenceResponse, form: OutputForm) -> tuple[int, list[Buffer]]:
    """Return the result of `write`. Raises TakesLong for large outputs, which another thread must write."""

def write_data(tensor: Tensor) -> bytes:
    """Return the elements of a tensor as a flat JSON array in row-major order.

    Finite floats have the fewest digits that parse to the same value, and a point or an exponent; the others
    are NaN, Infinity and -Infinity. BYTES are strings; bytes that are not UTF-8 are written unchanged. Raises
    CoreError and ValueError as `write` does. Large tensors are written without the GIL.
    """
