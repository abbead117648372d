"""Statistics show the memory of the file and of the cache of keys and values."""

import pytest
from backend_llamacpp import backend
from core_testing.served import Served
from gguf_files import POOLING_MEAN, encoder

pytest.importorskip("xllamacpp", reason="llama.cpp runs the model")


@pytest.fixture
def memory(tmp_path):
    """Return a function that returns the bytes of the model's file, and those that its statistics show."""

    def found(slots):
        folder = tmp_path / str(slots) / "m" / "1"
        folder.mkdir(parents=True)
        file = folder / "model.gguf"
        file.write_bytes(encoder(POOLING_MEAN, context=64))
        values = {"slots": slots, "threads": 1}
        (folder.parent / "config.pbtxt").write_text(
            "".join(
                f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
                for name, value in values.items()
            )
        )
        with Served(backend, tmp_path / str(slots)) as served:
            served.load("m")
            (shown,) = served.statistics("m")["memory_usage"]
        assert shown["type"] == "CPU"
        return file.stat().st_size, int(shown["byte_size"])

    return found


def test_the_memory_is_that_of_the_file_and_grows_with_the_slots(memory):
    file, one = memory(1)
    _, three = memory(3)

    assert file < one
    assert three - file == 3 * (one - file)
