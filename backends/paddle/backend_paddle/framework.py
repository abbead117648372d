"""Paddle and Paddle Inference, imported without their handlers of signals and logs: `paddle`, `inference`.

At its import Paddle takes SIGTERM and the signals of crashes: a server that is to end would print a trace
of the stack instead. It also writes what any logger says to stderr.
"""

from __future__ import annotations

import logging
import os
import warnings

from backend_paddle.signal_handlers import kept_signal_handlers

os.environ.setdefault("GLOG_minloglevel", "2")  # errors only

_handlers, _level = logging.root.handlers[:], logging.root.level
with kept_signal_handlers(), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of compilers that are not there, for operators of one's own
    import paddle
    from paddle import inference
logging.root.handlers[:] = _handlers  # Paddle would write each line of the server's log once more
logging.root.setLevel(_level)

logging.getLogger("paddle").setLevel(logging.ERROR)

__all__ = ["inference", "paddle"]
