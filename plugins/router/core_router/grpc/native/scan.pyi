from typing import final

from core_router.choice.sequences import SequenceParameters

@final
class RequestFields:
    """What a ModelInferRequest, or the begin of one, says.

    model, version, id   "" for none
    sequence             None if it names no sequence
    """

    @property
    def model(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def sequence(self) -> SequenceParameters | None: ...

def request_fields(message: bytes, at: int) -> RequestFields:
    """Return what the bytes from `at` on say. Other requests have name and version in the same fields."""

def response_fields(message: bytes, at: int) -> tuple[bool, str, str, bool]:
    """Return what a ModelStreamInferResponse says, from byte `at` on.

    That is: whether it has failed, its model, the id of its request, and whether it says that it is not the
    last response to that request.
    """
