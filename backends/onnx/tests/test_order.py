"""Circles in graphs, for `core check`."""

import random

import pytest
from backend_onnx.unloaded.order import circle_in


def test_nodes_in_any_order_can_run():
    chance = random.Random(3)
    for size in range(1, 40):
        nodes = [
            ([f"t{chance.randrange(i)}" if i else "x", "x", ""], [f"t{i}"]) for i in range(size)
        ]
        chance.shuffle(nodes)

        assert circle_in(nodes) == []


@pytest.mark.parametrize(
    ("nodes", "circle"),
    [
        ([(["a"], ["a"])], ["a"]),
        ([(["x", "b"], ["a"]), (["a"], ["b"])], ["a", "b"]),
        ([(["x"], ["a"]), (["a", "c"], ["b"]), (["b"], ["c"])], ["b", "c"]),
    ],
)
def test_tensors_that_need_themselves_are_named(nodes, circle):
    assert circle_in(nodes) == circle


def test_what_follows_a_circle_cannot_run_either():
    assert circle_in([(["b"], ["a"]), (["a"], ["b"]), (["b"], ["y"])]) == ["a", "b", "y"]


def test_a_long_row_needs_no_deep_stack():
    nodes = [([f"t{i}"], [f"t{i + 1}"]) for i in range(50_000)]

    assert circle_in(nodes[::-1]) == []
