"""A catalog over the folder that a test writes."""

import pytest

from core.repository import Catalog, open_repositories


@pytest.fixture
def catalog(folder):
    return Catalog(open_repositories([str(folder.path)]))
