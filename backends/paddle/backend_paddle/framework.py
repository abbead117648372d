"""Paddle and Paddle Inference, imported without their handlers of signals: `paddle`, `inference`.

At its import Paddle takes SIGTERM and the signals of crashes: a server that is to end would print a trace
of the stack instead.
"""

from __future__ import annotations

import logging
import os
import warnings

from backend_paddle.signal_handlers import kept_signal_handlers

os.environ.setdefault("GLOG_minloglevel", "2")  # errors only

with kept_signal_handlers(), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of compilers that are not there, for operators of one's own
    import paddle
    from paddle import inference

logging.getLogger("paddle").setLevel(logging.ERROR)

__all__ = ["inference", "paddle"]
