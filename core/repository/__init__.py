"""Where models come from: folders, those that join a running server too, and load requests with files.

    Repository ─► Catalog ─► [ModelSource] ─► lifecycle

Nothing here decides or loads anything; it says what is there. All functions may block and run on
worker threads, but for `Catalog.names`, which lists one folder for each repository.
"""

from core.repository.catalog import Catalog, open_repositories
from core.repository.folder import FolderRepository, stamp_of
from core.repository.joined import JoinedFolder, Place
from core.repository.override import Override
from core.repository.source import Listing, ModelDirectory, ModelSource, Repository

__all__ = [
    "Catalog",
    "FolderRepository",
    "JoinedFolder",
    "Listing",
    "ModelDirectory",
    "ModelSource",
    "Override",
    "Place",
    "Repository",
    "open_repositories",
    "stamp_of",
]
