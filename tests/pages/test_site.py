"""The docs site builds without a warning, has every page, and loads nothing from another host."""

import importlib.util
import json
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pages.blocks import ROOT

SITE = runpy.run_path(str(ROOT / ".ci" / "site.py"))
PICTURES = ROOT / "docs" / "pictures"
REFERENCE = runpy.run_path(str(ROOT / ".ci" / "reference.py"))


class Loaded(HTMLParser):
    """Collects the addresses that a browser fetches with a page."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video", "audio"):
            self.addresses.append(named.get("src"))
        elif tag == "link" and named.get("rel") not in ("canonical", "prev", "next"):
            self.addresses.append(named.get("href"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: dependency group docs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "site.py", folder],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_on_the_site_and_can_be_searched(site):
    found = {
        entry["location"]
        for entry in json.loads((site / "search/search_index.json").read_text())["docs"]
    }

    for name, address in SITE["addresses"]().items():
        place = re.sub(r"index$", "", address.removesuffix(".md"))
        assert (site / place / "index.html").is_file()
        assert ((f"{place}/" if place else "") in found) == (name not in SITE["_NOT_SEARCHED"])


def test_nothing_is_loaded_from_another_host(site):
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text())
        elsewhere = [each for each in loaded.addresses if each and re.match(r"(\w+:)?//", each)]
        assert elsewhere == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text()), style


def test_a_link_to_a_file_of_the_repository_leads_to_its_text(site):
    page = (site / "write" / "native-backends" / "index.html").read_text()

    assert 'href="../../files/core/include/core_abi.h.txt"' in page
    assert (site / "files/core/include/core_abi.h.txt").read_text().startswith("/*")


@pytest.mark.parametrize("name", sorted(REFERENCE["PAGES"]))
def test_a_reference_page_is_made_from_the_source(name):
    assert (ROOT / "docs" / name).read_text() == REFERENCE["PAGES"][name](), "run `make docs`"


def test_every_field_of_a_configuration_has_a_meaning():
    from core.config import ModelConfig

    page = REFERENCE["fields_page"]()

    for field in ModelConfig.DESCRIPTOR.fields:
        assert re.search(rf"^\| `{field.name}` \| \S.* \| \S.* \|$", page, re.MULTILINE), field.name
    assert re.findall(r"^\| `\w+` \| [^|]* \| (?:; [^|]*)?\|$", page, re.MULTILINE) == []


def test_pictures_are_those_that_the_script_draws(tmp_path):
    runpy.run_path(str(PICTURES / "draw.py"))["main"](tmp_path)

    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_text() for path in PICTURES.glob("*.svg")}


def test_the_picture_of_the_tutorial_is_the_one_that_the_script_draws(tmp_path):
    image = pytest.importorskip("PIL.Image")
    clients = ROOT / "examples" / "clients"

    runpy.run_path(str(clients / "make_seven.py"))["draw"](tmp_path / "seven.png")

    # Other versions of the library may compress otherwise.
    assert (
        image.open(tmp_path / "seven.png").tobytes()
        == image.open(Path(clients / "seven.png")).tobytes()
    )
