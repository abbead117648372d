"""Settings that each worker has separately are logged at the start."""

from core_workers.checks import not_shared

from core.options import Options


def test_workers_have_the_memory_of_gpus_each_for_itself():
    options = Options.defaults(workers=3)

    (text,) = not_shared(options, [0, 1])

    assert text.startswith("GPU 0, 1: with --workers=3 each worker has all models in the memory")
    assert not_shared(options) == []
