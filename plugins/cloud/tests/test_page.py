"""docs/serve/cloud-repositories.md matches the code."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from core_cloud.address import place_of
from core_cloud.credentials import _VARIABLES, FILE, credentials_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "serve" / "cloud-repositories.md").read_text()
URLS = re.findall(r"^\| `((?:s3|gs|as)://[^`]+)`", PAGE, re.MULTILINE)


@pytest.mark.parametrize("url", URLS)
def test_a_form_of_the_page_is_read(url):
    place = place_of(url.replace(":port", ":9000"))

    assert place.root in ("bucket/path", "container/path")
    assert ("host" in url) == bool(place.endpoint)


def test_the_page_has_every_form():
    assert len(URLS) == 8


@pytest.mark.parametrize(
    "variable", [name for each in _VARIABLES.values() for name in each.values()]
)
def test_the_page_has_every_variable(variable):
    assert f"`{variable}" in PAGE


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("s3://bucket", {"key_id", "secret_key", "region"}),
        ("s3://https://store.internal:9000/b", {"key_id", "secret_key", "session_token"}),
        ("s3://shared/models", {"profile"}),
        ("gs://bucket", {"path"}),
        ("as://account/container", {"account_str", "account_key"}),
        ("as://other/container", {"auth_type", "client_id"}),
    ],
)
def test_the_file_of_the_page_is_read(tmp_path, url, found):
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps(json.loads(block)))

    assert set(credentials_of(place_of(url), {FILE: str(path)})) == found


def test_the_program_of_the_page_runs():
    example = ROOT / "examples" / "cloud_repository.py"
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shown = "".join(f"    {line}" if line.strip() else line for line in block.splitlines(True))

    done = subprocess.run(
        [sys.executable, example], capture_output=True, text=True, check=False, timeout=100
    )

    assert shown in example.read_text()
    assert done.stdout == "iris says [[0.0]]\n[('iris', '2', 'READY')]\n", done.stderr
