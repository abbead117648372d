"""OpenCV, without its change of LD_LIBRARY_PATH.

Its import puts the folder of its libraries and an empty name, which means the current folder, in front of the
variable. Programs that the server starts would look for libraries there.
"""

import os

_NAME = "LD_LIBRARY_PATH"
_before = os.environ.get(_NAME)

import cv2  # noqa: E402

if _before is None:
    os.environ.pop(_NAME, None)
else:
    os.environ[_NAME] = _before

__all__ = ["cv2"]
