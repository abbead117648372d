"""The backend where JAX is not installed: each load says how to install it."""

from __future__ import annotations

from pathlib import Path

from backend_jax.installed import not_installed
from core.backend import Backend, Model, ModelInstance
from core.config import ModelConfig


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Raise CoreError(INVALID)."""
    raise not_installed(config.name)


class ModelWithoutJax(Model):
    """A model that cannot be loaded."""

    def load(self) -> None:
        raise not_installed(self.name)


backend = Backend(model=ModelWithoutJax, instance=ModelInstance, complete=complete)
