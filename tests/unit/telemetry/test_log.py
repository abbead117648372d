"""Lines of the log."""

import io
import logging
import re

import pytest

from core.errors import CoreError
from core.options import Options
from core.telemetry import log

logger = logging.getLogger("core")


@pytest.fixture
def lines():
    """Configure the log with options; return the lines written so far."""
    level, handlers = logger.level, logging.getLogger().handlers[:]
    stream = io.StringIO()

    def configure(**changes):
        log.configure(Options.defaults(**changes), stream)
        return lambda: stream.getvalue().splitlines()

    yield configure
    log.configure(Options.defaults(), io.StringIO())
    logger.setLevel(level)
    logging.getLogger().handlers[:] = handlers


def test_a_line_begins_with_severity_time_process_and_place(lines):
    written = lines()

    logger.info("loading: %s:%d", "mnist", 1)
    logger.warning("a")
    logger.error("b")

    assert re.fullmatch(
        r'I\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ test_log\.py:\d+\] "loading: mnist:1"', written()[0]
    )
    assert [line[0] for line in written()] == ["I", "W", "E"]


def test_the_other_form_has_the_time_of_iso_8601(lines):
    written = lines(log_format="ISO8601")

    logger.warning("a")

    assert re.fullmatch(
        r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ W \d+ test_log\.py:\d+\] "a"', written()[0]
    )


def test_a_text_cannot_forge_a_log_line(lines):
    written = lines()

    logger.info("model 'a\nI0101 00:00:00.000000 1 server.py:1] \"fine\"\x1b[2J\x85\u2028' é")

    (line,) = written()
    assert r"a\nI0101" in line
    assert r"\"fine\"\u001b[2J\u0085\u2028' é" in line
    assert line.isprintable()


def test_a_traceback_follows_indented(lines):
    written = lines()

    try:
        raise ValueError("first\nI0101 second")
    except ValueError:
        logger.exception("loading failed")

    head, *rest = written()
    assert head.endswith('"loading failed"')
    assert rest[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in rest)


def test_each_severity_can_be_turned_off(lines):
    written = lines(log_info=False, log_verbose=1, log_error=False)

    logger.debug("verbose")
    logger.info("info")
    logger.warning("warning")
    logger.error("error")

    assert [line.rpartition("] ")[2] for line in written()] == ['"verbose"', '"warning"']


def test_verbose_messages_are_off_by_default(lines):
    written = lines()

    logger.debug("verbose")

    assert written() == []
    assert not logger.isEnabledFor(logging.DEBUG)


def test_other_libraries_write_in_the_same_form(lines):
    written = lines()

    logging.getLogger("asyncio").error("Task was destroyed")

    assert written()[0].startswith("E")


def test_a_block_is_written_unescaped_with_a_blank_line_after_it(lines):
    written = lines()

    log.block("+--+\n|  |")

    assert written()[0].endswith("] ")
    assert written()[1:] == ["+--+", "|  |", ""]


def test_the_log_goes_to_a_file_and_adds_to_it(lines, tmp_path):
    file = tmp_path / "server.log"
    file.write_text("before\n")
    written = lines(log_file=str(file))

    logger.info("a")

    assert written() == []
    assert file.read_text().startswith("before\nI")


def test_a_file_that_cannot_be_opened_is_an_error_on_the_console(lines, tmp_path):
    written = lines(log_file=str(tmp_path / "absent" / "server.log"))

    assert "failed to open the log file" in written()[0]


def test_a_change_is_in_effect_with_the_next_line(lines):
    written = lines()

    log.change({"log_info": False, "log_verbose_level": 1, "log_format": "ISO8601"})
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        logger.log(level, "a")
    log.change({"log_info": True, "log_verbose_level": 0, "log_format": "default"})
    for level in (logging.DEBUG, logging.INFO):
        logger.log(level, "a")

    assert [re.sub(r"[^TIW]", "", line.partition("] ")[0])[:2] for line in written()] == [
        "TI",
        "TW",
        "I",
    ]


def test_with_every_severity_off_the_log_is_empty(lines):
    written = lines()

    log.change({"log_info": False, "log_warning": False, "log_error": False})
    logger.error("a")
    logging.getLogger("asyncio").error("Task was destroyed")

    assert written() == []


def test_an_invalid_change_has_no_effect(lines):
    written = lines(log_verbose=2)
    before = log.current()

    with pytest.raises(CoreError):
        log.change({"log_info": False, "log_verbose_level": -1})
    logger.info("a")

    assert log.current() == before
    assert len(written()) == 1


def test_the_settings_name_the_file_that_is_written(lines, tmp_path):
    lines(log_file=str(tmp_path / "server.log"))
    assert log.current()["log_file"] == str(tmp_path / "server.log")

    lines(log_file=str(tmp_path / "absent" / "server.log"))
    assert log.current()["log_file"] == ""
