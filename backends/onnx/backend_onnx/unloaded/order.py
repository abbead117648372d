"""Find a circle in a graph: nodes that need, over other nodes, what they write themselves."""

from __future__ import annotations

from collections.abc import Sequence

Node = tuple[Sequence[str], Sequence[str]]
"""The names of the tensors that a node reads, and of those that it writes."""


def circle_in(nodes: Sequence[Node]) -> list[str]:
    """Return the sorted tensors of nodes that can never run; [] if all can.

    A tensor that no node writes is there from the beginning.
    """
    source = {name: index for index, (_, writes) in enumerate(nodes) for name in writes}
    waits = [{source[name] for name in reads if name in source} for reads, _ in nodes]
    followers: list[list[int]] = [[] for _ in nodes]
    for index, needed in enumerate(waits):
        for each in needed:
            followers[each].append(index)
    left = [len(needed) for needed in waits]
    ready = [index for index, count in enumerate(left) if not count]
    for index in ready:  # it grows
        for each in followers[index]:
            left[each] -= 1
            if not left[each]:
                ready.append(each)
    return sorted(
        name for (_, writes), count in zip(nodes, left, strict=True) if count for name in writes
    )
