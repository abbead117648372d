"""The unit of systemd: its tool accepts it, and its times fit the server's."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core import plugins
from core.options import parse

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "core-serve.service"


def settings():
    """(key, value) of each line of the unit, in order; empty values too."""
    lines = UNIT.read_text().splitlines()
    pairs = [line.partition("=") for line in lines if line[:1] not in ("", "#", "[")]
    return [(key, value) for key, _, value in pairs]


def value_of(key):
    (found,) = [value for name, value in settings() if name == key]
    return found


def options():
    program, *words = shlex.split(value_of("ExecStart").replace("$CORE_OPTIONS", ""))
    assert Path(program).name == "core-serve"
    return parse(words, plugins.flags())


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_systemd_accepts_it(tmp_path):
    # The program of the unit need not be installed here.
    text = UNIT.read_text().replace("/opt/core/bin/core-serve", sys.executable)
    (tmp_path / UNIT.name).write_text(text)

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--generators=no", str(tmp_path / UNIT.name)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    said = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, said) == (0, []), done.stderr


def test_its_command_line_is_one_that_the_server_takes():
    assert options().model_repository == ["/srv/models"]


def test_systemd_waits_longer_for_the_end_than_the_server_does():
    assert int(value_of("TimeoutStopSec")) > options().exit_timeout_secs


def test_started_means_that_models_serve_and_loading_has_no_time_limit():
    assert value_of("Type") == "notify"
    assert value_of("TimeoutStartSec") == "infinity"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("DynamicUser", "yes"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("PrivateTmp", "yes"),
        ("CapabilityBoundingSet", ""),
        ("ReadOnlyPaths", "/srv/models"),
    ],
)
def test_it_is_hardened(key, value):
    assert value_of(key) == value
