"""Every target of the Makefile runs on a fresh clone: its prerequisites exist or are made."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VERBS = re.findall(r"^([\w-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_finds_all_that_it_is_made_of(verb):
    # --always-make: as on a clone on which nothing has been made yet.
    run = ["make", "--dry-run", "--always-make", verb, "NAME=x"]

    plan = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert plan.returncode == 0, plan.stderr


def test_the_readme_begins_with_verbs_that_there_are():
    said = re.findall(r"^    make ([\w-]+)", (ROOT / "README.md").read_text(), re.M)

    assert said and set(said) <= set(VERBS)
