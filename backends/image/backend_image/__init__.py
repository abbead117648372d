"""Pictures before and after a model: decode, resize, normalise; classes, boxes, masks, drawing."""

from backend_image.backend import backend

__all__ = ["backend"]
