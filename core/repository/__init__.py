"""Model repositories: folders, folders that join a running server, and load requests with files.

    Repository ─► Catalog ─► [ModelSource] ─► lifecycle

This package reports the available models; it decides and loads nothing. All functions may block and run on
worker threads, except `Catalog.names`, which lists one folder for each repository.
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
