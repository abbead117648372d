from collections.abc import Set

from core.request import InferenceRequest
from core.tensor import Buffer
from frontends.shared.memory import SharedMemoryRegions

COPIED_BYTES: int  # a binary tensor of more is a view into the body

class OutputForm:
    """How outputs leave: after the JSON in binary, in it, or not at all.

    default   whether outputs that are not listed are binary
    listed    output → whether it is binary
    placed    outputs that are in shared memory, so that the answer only describes them

    Who asks for one output in each form has a form of its own; forms that `read` gives may be those
    of other requests too, so only who made a form writes to it. Of outputs that the answer cannot
    have, because the request lists others, it says nothing.
    """

    default: bool
    listed: dict[str, bool]
    placed: Set[str]

    def __init__(
        self,
        default: bool = False,
        listed: dict[str, bool] | None = None,
        placed: Set[str] | None = None,
    ) -> None: ...
    def binary(self, output: str) -> bool:
        """Whether the output leaves in binary."""

def read(
    model: str,
    version: int,
    body: Buffer,
    json_size: int,
    most_bytes: int,
    regions: SharedMemoryRegions,
) -> tuple[InferenceRequest, OutputForm] | None:
    """The request in a body, as `parse_document` in parse.py reads it; None if it should look itself.

    That is so for whatever is wrong, and for what is right but odd: a member that comes twice, more
    than 100 levels of lists or objects, a parameter that is an integer of more than 64 bits.

    body        contiguous; binary tensors of more than COPIED_BYTES view it and keep it alive
    json_size   bytes of JSON at its start
    most_bytes  of one tensor in JSON; its elements are converted once, into bytes that the tensor owns
    Large JSON is read without the GIL; nobody may write to the body meanwhile.
    """
