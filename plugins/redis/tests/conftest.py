"""A whole server over model folders."""

from flow.lifecycle.conftest import ask, backend, models, serve

__all__ = ["ask", "backend", "models", "serve"]
