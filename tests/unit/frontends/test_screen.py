"""The log as lines for a person."""

import io
import logging
import re

import pytest
from rich.console import Console

from core.options import Options
from core.telemetry import log
from frontends.http.options import HttpOptions
from frontends.terminal.screen import Screen, _SafeConsole

core_log = logging.getLogger("core")


@pytest.fixture
def screen():
    """Return a function that makes a screen of the log; its console writes to a text."""

    def show(width=60, verbose=0, worker=0, file=None):
        text = file or io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        options = Options.defaults(HttpOptions(http_port=8123), workers=2)
        console = _SafeConsole(file=text, width=width, highlight=False)
        made = Screen(options, worker, console=console)
        made.shown = lambda: text.buffer.getvalue().decode()
        log.configure(Options.defaults(log_verbose=verbose), console=made)
        return made

    yield show
    log.configure(Options.defaults())
    (handler,) = log._handlers
    logging.getLogger().removeHandler(handler)
    log._handlers = ()


class Version:
    def __init__(self, number=1, seconds=0.25, key="iris"):
        self.key, self.version, self.load_seconds = key, number, seconds


def test_a_model_with_several_versions_is_one_line_with_the_longest_time(screen):
    shown = screen()

    shown.changed(Version(1, 0.25), "ready")
    shown.changed(Version(3, 1.5), "ready")
    core_log.info("successfully loaded '%s'", "iris")

    assert shown.shown() == "  ✓ iris                1.5 s  versions 1, 3\n"


def test_a_version_that_leaves_before_its_line_is_not_in_the_next_one(screen):
    shown = screen()

    shown.changed(old := Version(1, 9.0), "ready")
    shown.changed(old, "unloading")
    shown.changed(Version(2, 0.5), "ready")
    core_log.info("successfully loaded '%s'", "iris")

    assert shown.shown() == "  ✓ iris                0.5 s\n"


def test_a_screen_without_unicode_uses_letters(screen):
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    shown = screen(file=file)

    core_log.info("successfully loaded '%s'", "iris")
    core_log.error("failed to load '%s': %s", "other", "Internal: no reason")

    assert shown.shown() == "  + iris\n  x other\n    no reason\n"


def test_steps_are_left_out(screen):
    shown = screen()

    core_log.info("loading: %s", "iris:1")
    core_log.info("Timeout %d: Found %d live models", 3, 0)
    core_log.info("Started %s at %s:%d", "HTTPService", "127.0.0.1", 8123)

    assert shown.shown() == ""
    assert shown.ports == {"HTTPService": 8123}


def test_verbose_messages_bring_the_steps(screen):
    shown = screen(verbose=1)

    core_log.info("loading: %s", "iris:1")
    core_log.debug("more")

    assert shown.shown() == "loading: iris:1\nmore\n"


def test_text_of_a_client_cannot_control_the_terminal(screen):
    shown = screen(width=200)

    core_log.warning("model '%s' is odd", "x\x1b[2J\r[bold]y[/bold]\nerror: forged\u2028")
    core_log.error("failed to load '%s': %s", "a\x1b[31m", "b\x1b[31m")

    assert "\x1b" not in shown.shown()
    assert "\\u001b[2J\\r[bold]y[/bold]\\nerror: forged\\u2028" in shown.shown()
    assert len(shown.shown().splitlines()) == 3


def test_a_long_text_wraps_between_words_and_keeps_its_command_whole(screen):
    shown = screen(width=40)
    command = "mkdir models/iris/1 && mv models/iris/model.onnx models/iris/1/"

    core_log.warning("this repository holds nothing that could be served: `%s`", command)

    *text, last = shown.shown().splitlines()
    assert text == ["warning: this repository holds nothing", "that could be served"]
    assert last == f"    $ {command}"


def test_an_unexpected_error_keeps_its_traceback(screen):
    shown = screen(width=200)

    try:
        raise ValueError("surprise")
    except ValueError:
        core_log.exception("closing failed")

    lines = shown.shown().splitlines()
    assert lines[0] == "error: closing failed"
    assert lines[-1] == "    ValueError: surprise"


def test_lines_begin_with_the_time_while_the_server_serves(screen):
    shown = screen(width=200)

    shown.ready("1 model", [("gRPC", "localhost:8001")])
    core_log.warning("late")
    shown.changed(served := Version(), "ready")
    shown.changed(served, "unloading")
    shown.ending()
    core_log.warning("later")

    assert "\nready: 1 model\n  gRPC     localhost:8001\n\n" in shown.shown()
    assert re.search(r"^\d\d:\d\d:\d\d warning: late$", shown.shown(), re.MULTILINE)
    assert re.search(r"^\d\d:\d\d:\d\d 'iris' leaves service$", shown.shown(), re.MULTILINE)
    assert shown.shown().endswith("\nwarning: later\n")


def test_later_workers_show_problems_only(screen):
    shown = screen(worker=2)

    core_log.info("successfully loaded '%s'", "iris")
    core_log.warning("careful")

    assert shown.shown() == "warning: worker 2: careful\n"


def test_the_process_that_starts_workers_says_when_they_are_ready(screen):
    shown = screen()

    core_log.info("starting %d workers, each with all models", 2)
    core_log.info("all %d workers are up", 2)

    assert shown.shown() == "\nready: 2 workers, http://localhost:8123\n\n"


def test_settings_of_the_log_hold_for_the_screen(screen):
    shown = screen()

    log.change({"log_warning": False})
    core_log.warning("not wanted")
    log.change({"log_warning": True})
    core_log.warning("wanted")

    assert shown.shown() == "warning: wanted\n"


class Gone(io.StringIO):
    """A terminal that has gone."""

    encoding = "utf-8"

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


def test_a_terminal_that_has_gone_does_not_end_the_server(screen):
    shown = screen(file=Gone())

    core_log.error("nobody reads this")
    shown.say("nor this")


def test_rich_would_end_it():
    """The reason for _SafeConsole."""
    with pytest.raises(SystemExit):
        Console(file=Gone()).print("text")
