"""A catalog over the folder that a test writes."""

import pytest

from core.repository import Catalog, FolderRepository


@pytest.fixture
def catalog(folder):
    return Catalog([FolderRepository(str(folder.path))])
