"""ServerMetrics: the metrics of all servers as those of one.

join ─► add, add, … ─► leave ─► [ServerMetrics] ─► sums of counters; gauges by server ─► text

A sum has what servers have counted from their joining to their leaving, and begins at zero. So it never
falls, and never jumps by the past of a server: not when one joins, leaves, comes back, or is started again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

_Values = dict[bytes, float]
_START = re.compile(rb"^\w*process_start_time_seconds(?:\{[^}]*\})? (\S+)", re.MULTILINE)


def start_of(text: bytes) -> bytes:
    """Return when the process of a server was started, from its metrics; b"" if they do not say."""
    found = _START.search(text)
    return found[1] if found is not None else b""


class _Family:
    """One metric: its kind and lines of text, its sums, and what cannot be added, by server."""

    def __init__(self) -> None:
        self.kind = b"untyped"
        self.comments: list[bytes] = []
        self.sums: _Values = {}
        self.single: dict[str, _Values] = {}

    def adds(self, sample: bytes) -> bool:
        """Return whether samples of several servers are added."""
        if self.kind == b"summary":
            return not (b"{" in sample and b'quantile="' in sample)
        return self.kind in (b"counter", b"histogram")


class ServerMetrics:
    """Adds the metrics of servers. Not thread-safe."""

    def __init__(self) -> None:
        self._families: dict[bytes, _Family] = {}
        self._last: dict[
            str, _Values
        ] = {}  # by server that has joined: its counts that are in the sums

    def join(self, server: str, text: bytes) -> Iterator[None]:
        """Take the first metrics of a server, with which its counts begin, a part in each step."""
        last: _Values = {}
        self._last[server] = last
        yield from self._take(server, last, text, self._base)

    def add(self, server: str, text: bytes) -> Iterator[None]:
        """Take the metrics of a server that has joined, a part in each step of the iterator.

        A newer text, or the server's leaving, ends the iterator.
        """
        for family in self._families.values():
            family.single.pop(server, None)
        if server in self._last and text:
            last = self._last[server] = dict(self._last[server])
            yield from self._take(server, last, text, self._sample)

    def restart(self, server: str, text: bytes) -> None:
        """Add the last metrics of a server's process; b"" if they were added. The next one counts from zero.

        Without it, a count that has grown beyond that of the process before would be taken for the same one.
        """
        for _ in self.add(server, text):
            pass
        if server in self._last:
            self._last[server] = {}

    def leave(self, server: str, text: bytes) -> None:
        """Add the last metrics of a server. Its counts stay in the sums; its gauges do not."""
        for _ in self.add(server, text):
            pass
        self._last.pop(server, None)
        for family in self._families.values():
            family.single.pop(server, None)

    def _take(
        self,
        server: str,
        last: _Values,
        text: bytes,
        take: Callable[[str, _Values, _Family, bytes], None],
    ) -> Iterator[None]:
        family, name = _Family(), b""
        lines = iter(text.splitlines())
        while self._last.get(server) is last and (part := list(islice(lines, 500))):
            for line in part:
                if line.startswith(b"#"):
                    family, name = self._comment(line, family, name)
                elif line:
                    take(server, last, family, line)
            yield

    def text(self) -> Iterator[bytes]:
        """Return all metrics in the text format of Prometheus, metric by metric."""
        for family in self._families.values():
            lines = [b"%s %s" % (key, _number(value)) for key, value in family.sums.items()]
            for server, values in family.single.items():
                label = b'server="%s"' % server.encode()
                lines += [
                    b"%s %s" % (_labelled(key, label), _number(value))
                    for key, value in values.items()
                ]
            if lines:
                yield b"\n".join([*family.comments, *lines, b""])

    def _comment(self, line: bytes, family: _Family, name: bytes) -> tuple[_Family, bytes]:
        """Return the metric that a line of HELP or TYPE begins, and its name."""
        words = line.split(b" ", 3)
        if len(words) < 4 or words[1] not in (b"HELP", b"TYPE"):
            return family, name
        if words[2] != name:
            name = words[2]
            family = self._families.setdefault(name, _Family())
        if words[1] == b"TYPE":
            family.kind = words[3]
        if all(each.split(b" ", 2)[1] != words[1] for each in family.comments):
            family.comments.append(line)
        return family, name

    def _base(self, server: str, last: _Values, family: _Family, line: bytes) -> None:
        key, _, number = line.rpartition(b" ")
        value = _value(number)
        if value is not None and family.adds(key):
            last[key] = value
            family.sums.setdefault(key, 0.0)

    def _sample(self, server: str, last: _Values, family: _Family, line: bytes) -> None:
        key, _, number = line.rpartition(b" ")
        value = _value(number)
        if value is None:
            return
        if not family.adds(key):
            family.single.setdefault(server, {})[key] = value
            return
        before = last.get(key, 0.0)
        last[key] = value
        # A count that has fallen began again at zero.
        family.sums[key] = family.sums.get(key, 0.0) + (
            value - before if value >= before else value
        )


def _value(number: bytes) -> float | None:
    try:
        return float(number)
    except ValueError:
        return None


def _labelled(sample: bytes, label: bytes) -> bytes:
    """Return a sample's name and labels with another label before them."""
    name, brace, rest = sample.partition(b"{")
    if not brace:
        return b"%s{%s}" % (name, label)
    return b"%s{%s%s%s" % (name, label, b"" if rest.startswith(b"}") else b",", rest)


def _number(value: float) -> bytes:
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": b"NaN", "inf": b"+Inf", "-inf": b"-Inf"}[str(value)]
    return b"%d" % value if value == int(value) else repr(value).encode()
