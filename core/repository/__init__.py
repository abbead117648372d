"""Where models come from: folders, those that join a running server too, and load requests with files.

    Repository ─► Catalog ─► [ModelSource] ─► lifecycle

Nothing here decides or loads anything; it says what is there. All functions may block and run on
worker threads, but for `Catalog.names`, which lists one folder for each repository.
"""

from core.repository.catalog import Catalog
from core.repository.folder import FolderRepository, files_of, stamp_of
from core.repository.joined import JoinedFolder, ModelLocation
from core.repository.names import is_folder_name
from core.repository.opening import open_repositories
from core.repository.override import Override
from core.repository.private import PrivateDirectory
from core.repository.source import (
    Listing,
    ModelDirectory,
    ModelSource,
    Repository,
    is_configuration,
    is_flat,
    version_number,
)

__all__ = [
    "Catalog",
    "FolderRepository",
    "JoinedFolder",
    "Listing",
    "ModelDirectory",
    "ModelLocation",
    "ModelSource",
    "Override",
    "PrivateDirectory",
    "Repository",
    "files_of",
    "is_configuration",
    "is_flat",
    "is_folder_name",
    "open_repositories",
    "stamp_of",
    "version_number",
]
