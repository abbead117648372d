"""Video streams as models: cameras, web addresses and files in, frames out."""

from backend_video.backend import backend

__all__ = ["backend"]
