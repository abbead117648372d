"""Methods without an implementation are not called on a worker thread."""

from pathlib import Path

import pytest

import core
from core.backend import implements
from core.repository import ModelDirectory


class Loads(core.Model):
    def load(self):
        pass


@pytest.mark.parametrize(("method", "own"), [("load", True), ("unload", False)])
def test_a_model_overrides_what_its_class_defines(method, own):
    assert implements(Loads(), core.Model, method) is own


def test_a_class_below_the_one_that_overrides_does_so_too():
    class Below(Loads):
        pass

    assert implements(Below(), core.Model, "load")


def test_a_method_that_an_object_was_given_counts():
    model = core.Model()
    model.load = lambda: None

    assert implements(model, core.Model, "load")


@pytest.mark.parametrize("method", ["fetch", "remove"])
def test_a_folder_of_this_machine_is_neither_fetched_nor_removed(method):
    assert not implements(ModelDirectory(Path("model")), ModelDirectory, method)
