"""An invalid backend is refused with an error for its author."""

import pytest

import core


class Model(core.Model):
    pass


class Instance(core.ModelInstance):
    pass


class Later(core.Model):
    async def load(self):
        pass


class LaterInstance(core.ModelInstance):
    async def open(self):
        pass


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"instance": Instance()},
            "expected a class that inherits core.ModelInstance, and not an obj",
        ),
        ({"instance": Model}, "expected a class that inherits core.ModelInstance"),
        ({"model": Model()}, "expected a class that inherits core.Model, and not an object of it"),
        ({"model": object}, "expected a class that inherits core.Model"),
        (
            {"model": Later},
            "Later.load is a coroutine function, but core calls it on a worker thread.* write `def load`",
        ),
        ({"instance": LaterInstance}, "LaterInstance.open is a coroutine"),
        (
            {"instance": type("Inst", (Instance,), {"placement": "thraed"})},
            "Inst.placement is 'thraed', it must be one of thread, inline, auto, callback",
        ),
        (
            {"instance": type("Inst", (Instance,), {"memory": "gpu"})},
            "Inst.memory is 'gpu', it must be one of host, device",
        ),
    ],
)
def test_an_invalid_backend_is_an_error_with_the_reason(given, words):
    with pytest.raises(TypeError, match=words):
        core.Backend(**{"instance": Instance, **given})
