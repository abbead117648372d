"""Core's compiled functions that copy, split and join the bytes of a channel.

An interpreter that cannot import these, because it is not the server's, has plain.py in the place of this
module; `child/alone.py` puts it there.
"""

from core.native.arrays import joined
from core.native.frames import Frame, Reader, message
from core.native.gather import gather

__all__ = ["Frame", "Reader", "gather", "joined", "message"]
