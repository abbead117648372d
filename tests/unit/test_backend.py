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


def derived(base, *names):
    """Return a class with methods of these names."""
    return type("Mine", (base,), dict.fromkeys(names, lambda self, *given: None))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"instance": derived(core.ModelInstance, "excute")},
            "Mine has a method 'excute', which core never calls; did you mean 'execute'.* call it '_excute'",
        ),
        ({"instance": derived(core.ModelInstance, "executes")}, "did you mean 'execute'"),
        ({"instance": derived(core.ModelInstance, "execute", "opne")}, "did you mean 'open'"),
        ({"instance": derived(core.ModelInstance, "execute", "canceled")}, "mean 'cancelled'"),
        ({"model": derived(core.Model, "laod")}, "did you mean 'load'"),
        ({"model": derived(core.Model, "memory_usge")}, "did you mean 'memory_usage'"),
        ({"completes": None}, "Backend has no argument 'completes'; did you mean 'complete'?"),
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


def test_a_misspelt_method_of_the_backend_itself_is_an_error():
    with pytest.raises(TypeError, match=r"Mine has a method 'colse', .* did you mean 'close'"):
        derived(core.Backend, "colse")(instance=Instance)


@pytest.mark.parametrize(
    "given",
    [
        {"instance": derived(core.ModelInstance, "execute", "executed", "excute")},
        {"instance": derived(core.ModelInstance, "stream", "execution")},
        {"instance": derived(core.ModelInstance, "open", "execute_on_cpu")},  # native
        {"instance": derived(core.ModelInstance, "execute", "closed", "read", "checks", "_opne")},
        {
            "model": derived(
                core.Model, "loads", "loader", "reload", "upload", "files", "parameters"
            )
        },
        {"model": derived(core.Model, "batch_rules", "memory_used")},
        {"model": derived(core.Model, "load", "laod")},
    ],
)
def test_methods_that_are_merely_similar_are_the_authors_own(given):
    core.Backend(**{"instance": Instance, **given})


def test_a_class_with_its_own_arguments_takes_them():
    class Mine(core.Backend):
        def __init__(self, completes, **more):
            super().__init__(**more)
            self.completes = completes

    assert Mine(completes=1, instance=Instance).completes == 1
