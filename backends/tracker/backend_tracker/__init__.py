"""Track objects over the frames of a stream: ByteTrack, OC-SORT and BoT-SORT as sequence models."""

from backend_tracker.backend import backend

__all__ = ["backend"]
