"""Signals that come while a server starts, and what a server that does not start leaves."""

import os
import signal
import subprocess
import tempfile
import time

import pytest
from core_tune.server.own import OwnServer
from core_tune.signals import held, sigterm_interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_start_of_a_server_is_held_back(number):
    before = signal.signal(number, signal.default_int_handler)
    came = []
    try:
        with pytest.raises(KeyboardInterrupt), held():
            os.kill(os.getpid(), number)  # another thread may get it
            time.sleep(0.01)
            came.append(number)
    finally:
        signal.signal(number, before)
    assert came == [number]


def test_sigterm_interrupts_like_ctrl_c():
    before = signal.getsignal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        signal.raise_signal(signal.SIGTERM)

    assert signal.getsignal(signal.SIGTERM) == before


def test_a_server_that_cannot_be_started_closes_its_log(monkeypatch, tmp_path):
    opened, temporary = [], tempfile.TemporaryFile

    def refused(*arguments, **more):
        raise OSError("no more processes")

    def noted():
        opened.append(temporary())
        return opened[-1]

    monkeypatch.setattr(subprocess, "Popen", refused)
    monkeypatch.setattr(tempfile, "TemporaryFile", noted)

    with pytest.raises(OSError, match="no more processes"):
        OwnServer(tmp_path, "m", "http")

    assert [each.closed for each in opened] == [True]
