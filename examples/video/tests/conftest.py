"""The programs of the example and its plugin, which need not be installed.

They are last on the path, because some of their names are common.
"""

import shutil
import sys
from pathlib import Path

import pytest

VIDEO = Path(__file__).parents[1]
sys.path += [str(VIDEO), str(VIDEO / "watch")]


@pytest.fixture
def browser():
    """A headless Chromium of Playwright. Skips the test where either is missing."""
    from chromium import PROGRAMS

    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser is installed ({', '.join(PROGRAMS)})")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()
