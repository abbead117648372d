"""A server whose responses are files."""

import time

import core_folder_cache
import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError


@pytest.fixture(autouse=True)
def plugin():
    plugins.hooks().register(core_folder_cache, "folder_cache")
    yield
    plugins.hooks().unregister(core_folder_cache)


class Counting:
    """A server with a model that counts its executions."""

    def __init__(self, **settings):
        self.executions = 0
        self.settings = {"folder": {name: str(value) for name, value in settings.items()}}

    def half(self, x):
        self.executions += 1
        return {"y": x / 2}

    def __enter__(self):
        self.server = core.Server(model_control_mode="explicit", cache_config=self.settings)
        self.server.start()
        self.server.bind(
            "half",
            self.half,
            inputs={"x": ("FP32", [1])},
            outputs={"y": ("FP32", [1])},
            config={"response_cache": {"enable": True}},
        )
        return self

    def __exit__(self, *error):
        self.server.stop()

    def ask(self, value):
        return self.server.infer("half", {"x": np.array([value], np.float32)})["y"].tolist()


def files(folder, count):
    """Wait until the folder has so many responses."""
    end_s = time.monotonic() + 30
    while len(found := [each for each in folder.iterdir() if not each.suffix]) < count:
        assert time.monotonic() < end_s
        time.sleep(0.01)
    return found


def test_an_equal_request_gets_the_response_of_the_file(tmp_path):
    with Counting(path=tmp_path / "new" / "folder") as counting:
        first = counting.ask(4), counting.ask(6)
        files(tmp_path / "new" / "folder", 2)

        assert (counting.ask(4), counting.ask(6)) == first == ([2], [3])
        assert counting.executions == 2


def test_a_file_that_is_damaged_is_a_miss(tmp_path):
    with Counting(path=tmp_path) as counting:
        counting.ask(4)
        (file,) = files(tmp_path, 1)
        file.write_bytes(b"damaged")

        assert counting.ask(4) == [2]
        assert counting.executions == 2


def test_without_a_path_the_server_does_not_start():
    with pytest.raises(CoreError, match="needs --cache-config=folder,path=<folder>"):
        Counting().__enter__()
