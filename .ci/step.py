"""Run a command and say in one line what it does and for how long: .ci/step.py TITLE COMMAND…

On a terminal the line shows the seconds and the last output of the command while it runs. Elsewhere a line is
written at the start, every 15 seconds and at the end. If the command fails, its whole output follows and the
status is the command's. Needs nothing but Python.
"""

import shutil
import signal
import subprocess
import sys
import threading
import time

TERMINAL_S = 0.2
PIPE_S = 15.0


class Output:
    """What a command has written. A thread reads it."""

    def __init__(self, stream):
        self.lines = []
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._stream:
            self.lines.append(line)

    def last(self):
        """Return the last line with text, without its end; "" if there is none."""
        for line in reversed(self.lines[-20:]):
            if text := " ".join(line.split()):
                return text
        return ""

    def finish(self):
        self._thread.join()


def show(title, seconds, text, ended=False):
    """Write one line of progress; on a terminal over the line before."""
    line = f"{seconds:5.0f} s  {title}{'' if ended or not text else f': {text}'}"
    if sys.stdout.isatty():
        width = max(shutil.get_terminal_size().columns - 1, 20)
        line = "\r\033[K" + line[:width]
        print(line, end="\n" if ended else "", flush=True)
    else:
        print(line, flush=True)


def run(title, command):
    """Return the exit status of the command."""
    begin = time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        print(f"{title}: {error}", file=sys.stderr)
        return 127
    output = Output(process.stdout)
    interval = TERMINAL_S if sys.stdout.isatty() else PIPE_S
    if not sys.stdout.isatty():
        print(f"    … s  {title}", flush=True)
    while True:
        try:
            status = process.wait(interval)
            break
        except subprocess.TimeoutExpired:
            show(title, time.monotonic() - begin, output.last())
    output.finish()
    show(title, time.monotonic() - begin, "", ended=True)
    if status:
        sys.stdout.writelines(output.lines)
        print(f"{title}: `{' '.join(command)}` ended with {status}", file=sys.stderr)
    # A command that a signal ended has a negative status.
    return status if status >= 0 else 128 - status


def main(title, *command):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(run(title, command))


if __name__ == "__main__":
    main(*sys.argv[1:])
