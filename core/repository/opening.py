"""Opens the repositories of --model-repository."""

from __future__ import annotations

from core import plugins
from core.errors import internal, unsupported
from core.options import Options
from core.repository.folder import FolderRepository
from core.repository.source import Repository


def open_repositories(options: Options) -> list[Repository]:
    """Return a Repository for each location of --model-repository, in alphabetical order, without duplicates.

    Loop thread. Raises CoreError: UNSUPPORTED for a URL without a plugin, INTERNAL for what is no Repository;
    and as `plugins.ask`. It does not check that the location can be read: see Repository.check.
    """
    return [_open(location, options) for location in sorted(set(options.model_repository))]


def _open(location: str, options: Options) -> Repository:
    scheme, slashes, _ = location.partition("://")
    if not slashes:
        return FolderRepository(location)
    found = plugins.ask("core_open_repository", url=location, options=options)
    if found is None:
        hint = plugins.install_hint(scheme) or plugins.install_hint("plugins")
        raise unsupported(
            f"model repository '{_public(location)}': no plugin opens URLs of {scheme}://{hint}"
        )
    if not isinstance(found, Repository):
        raise internal(
            f"the plugin of model repository '{_public(location)}' made a {type(found).__name__}, not a "
            "core.repository.Repository"
        )
    return found


def _public(url: str) -> str:
    """Return a URL for error texts: without its user and password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
