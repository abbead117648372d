"""Unauthenticated: the error of a caller that could not be identified."""

from __future__ import annotations

from core.errors import CoreError, Kind


class Unauthenticated(CoreError):
    """CoreError(UNAUTHENTICATED) for a caller that could not be identified.

    shown   True if the caller sent credentials, which are invalid; False if it sent none
    """

    def __init__(self, message: str, *, shown: bool):
        super().__init__(Kind.UNAUTHENTICATED, message)
        self.shown = shown
