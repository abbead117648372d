"""Where models come from: folders, and load requests that bring their own files.

    Repository ─► Catalog ─► [ModelSource] ─► lifecycle

Nothing here decides or loads anything; it says what is there. All functions may block and run on
worker threads, but for `Catalog.names`, which lists one folder for each repository.
"""

from core.repository.catalog import Catalog, open_repositories
from core.repository.folder import FolderRepository, stamp_of
from core.repository.override import Override
from core.repository.source import Listing, ModelDirectory, ModelSource, Repository

__all__ = [
    "Catalog",
    "FolderRepository",
    "Listing",
    "ModelDirectory",
    "ModelSource",
    "Override",
    "Repository",
    "open_repositories",
    "stamp_of",
]
