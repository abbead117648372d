"""Opens the repositories of --model-repository."""

from __future__ import annotations

from core import plugins
from core.errors import internal, unsupported
from core.options import Options
from core.repository.folder import FolderRepository
from core.repository.source import Repository


def open_repositories(options: Options) -> list[Repository]:
    """Return a Repository for each location of --model-repository, sorted, each once. Loop thread.

    Raises CoreError(UNSUPPORTED) for a URL without a plugin, and the errors of the plugin.
    It does not check that the location can be read: see Repository.check.
    """
    return [_open(location, options) for location in sorted(set(options.model_repository))]


def _open(location: str, options: Options) -> Repository:
    scheme, slashes, rest = location.partition("://")
    if not slashes:
        return FolderRepository(location)
    found = plugins.ask("core_open_repository", url=location, options=options)
    if found is None:
        hint = plugins.install_hint(scheme) or plugins.install_hint("plugins")
        # Without user and password.
        raise unsupported(
            f"model repository '{scheme}://{rest.rpartition('@')[2]}': no plugin opens URLs of {scheme}://{hint}"
        )
    if not isinstance(found, Repository):
        raise internal(
            f"the plugin of model repository '{location}' made a {type(found).__name__}, not a "
            "core.repository.Repository"
        )
    return found
