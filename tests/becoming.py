"""Commands that change their own process and then become the command that follows them.

They take the place of a `preexec_fn`, which runs after a fork and before the new program. The process of the
tests may have threads of gRPC, with which such a child may stand still or close the files of its parent.
"""

import sys


def becoming(change):
    """The beginning of a command that runs `change`, a text of Python, in its process."""
    return (sys.executable, "-c", f"import os, sys\n{change}\nos.execvp(sys.argv[1], sys.argv[1:])")


INTERRUPTIBLE = becoming("import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)")
"""SIGINT reaches the program: a shell that starts the tests in the background has it ignored."""

AT_A_TERMINAL = becoming("import fcntl, termios\nos.setsid()\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)")
"""Its stdin is the terminal of a session of its own, so that ^C reaches the program."""
