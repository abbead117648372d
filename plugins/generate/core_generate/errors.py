"""Refusals of engines, by what they are about: routes name the field of their own request for it."""

from __future__ import annotations

from core.errors import CoreError, Kind


class PromptTooLong(CoreError):
    """INVALID error of a prompt that is longer than the context. Its text has both numbers."""

    def __init__(self, message: str):
        super().__init__(Kind.INVALID, message)


class StructureRefused(CoreError):
    """INVALID error of a Structure that the engine cannot compile, or that is too large for it."""

    def __init__(self, message: str):
        super().__init__(Kind.INVALID, message)
