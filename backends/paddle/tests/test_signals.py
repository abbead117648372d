"""The import of Paddle changes no handler of a signal."""

import ctypes
import os
import signal
import threading

import pytest
from backend_paddle.signal_handlers import kept_signal_handlers


@pytest.fixture
def seen():
    found = []
    before = signal.signal(signal.SIGUSR2, lambda number, frame: found.append(number))
    yield found
    signal.signal(signal.SIGUSR2, before)


def test_a_handler_is_that_of_before_though_c_code_has_changed_it_in_a_thread(seen):
    ignore = ctypes.c_void_p(1)  # SIG_IGN

    def change():
        with kept_signal_handlers():
            ctypes.CDLL(None).signal(int(signal.SIGUSR2), ignore)

    thread = threading.Thread(target=change)
    thread.start()
    thread.join()
    os.kill(os.getpid(), signal.SIGUSR2)

    assert seen == [signal.SIGUSR2]
