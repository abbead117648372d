"""Each tutorial works as it says: its files are written and its commands run, in a folder of their own."""

import pytest
from pages.blocks import blocks
from pages.reader import Reader, have_curl

PAGES = [
    "docs/operate/capture.md",
    "docs/operate/grafana.md",
    "docs/operate/jobs.md",
    "docs/serve/image-ensemble.md",
    "docs/serve/video.md",
    "docs/serve/vision.md",
    "docs/start/from-mlserver-torchserve.md",
    "docs/start/from-triton.md",
    "docs/start/onnx.md",
    "docs/start/pytorch.md",
    "docs/start/scikit-learn.md",
    "docs/write/first-backend.md",
    "docs/write/first-plugin.md",
]


@pytest.fixture
def reader(tmp_path):
    reader = Reader(tmp_path)
    yield reader
    reader.close()


@pytest.mark.skipif(not have_curl(), reason="curl is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_works_as_it_says(reader, page):
    for block in blocks(page):
        reader.read(block)

    if page.endswith("first-plugin.md"):
        assert reader.close() == 0
        assert "requests: iris 1" in reader.log()
