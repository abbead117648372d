"""ServerMetrics: the metrics of all servers as those of one.

metrics of each server ─► [ServerMetrics.add] ─► sums of counters; gauges by server ─► text

A sum never falls: what a server has counted stays when it is started again, or leaves the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

_MOST_GONE = 64  # servers that have left, and are known if they come back

_Values = dict[bytes, float]


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
        self._last: dict[str, _Values] = {}  # by server: the counts that are in the sums

    def add(self, server: str, text: bytes) -> Iterator[None]:
        """Take the metrics of a server, a part in each step of the iterator."""
        for family in self._families.values():
            family.single.pop(server, None)
        last = self._last.pop(server, {})
        self._last[server] = last  # the newest are at the end
        family, name = _Family(), b""
        lines = iter(text.splitlines())
        while part := list(islice(lines, 500)):
            for line in part:
                if line.startswith(b"#"):
                    family, name = self._comment(line, family, name)
                elif line:
                    self._sample(server, last, family, line)
            yield

    def forget(self, servers: Iterable[str]) -> None:
        """Forget gauges of all servers but these, and the counts of those that have long been gone."""
        there = set(servers)
        for family in self._families.values():
            for server in family.single.keys() - there:
                del family.single[server]
        gone = [server for server in self._last if server not in there]
        for server in gone[: max(0, len(gone) - _MOST_GONE)]:
            del self._last[server]

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

    def _sample(self, server: str, last: _Values, family: _Family, line: bytes) -> None:
        key, _, number = line.rpartition(b" ")
        try:
            value = float(number)
        except ValueError:
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
