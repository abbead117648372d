"""Backends whose `complete` is wrong where the configuration says nothing, or only a part."""

from broken_backends.contract import Contract, caught_by
from core.dtypes import FP32, INT32


def completing(datatype=FP32.number, dims=(3,)):
    """Return a `complete` that writes x and y of that datatype and those dims."""

    def complete(config, path, backend):
        config.max_batch_size = config.max_batch_size or 8
        for tensors, name in ((config.input, "x"), (config.output, "y")):
            if not tensors:
                tensors.add(name=name, data_type=datatype, dims=dims)

    return complete


class Completed(Contract):
    complete = None

    def made(self, folder, **changes):
        made = super().made(folder, **changes)
        made.backend.complete = vars(type(self))["complete"]
        return made


@caught_by(
    "test_a_model_without_a_configuration_is_described_by_its_files",
    says="complete wrote input 'x' as INT32, the example's array is FP32",
)
class TestWritesAnotherDatatype(Completed):
    complete = completing(INT32.number)


@caught_by(
    "test_a_model_without_a_configuration_answers",
    says="unexpected inference output 'y' for model 'example'",
)
class TestWritesNoOutput(Completed):
    def complete(config, path, backend):
        config.max_batch_size = 8
        if not config.input:
            config.input.add(name="x", data_type=FP32.number, dims=[3])


@caught_by("test_complete_adds_only_what_a_configuration_leaves_out")
class TestWritesAllOrNothing(Completed):
    def complete(config, path, backend):
        if not config.input and not config.output:
            completing()(config, path, backend)


# Further mistakes; test_kit.py lists them in EXTRA.
class TestWritesAnUnknownDatatype(Completed):
    complete = completing("FP64")


class TestWritesAnotherRank(Completed):
    complete = completing(dims=(3, 1))


class TestWritesAnotherName(Completed):
    def complete(config, path, backend):
        config.max_batch_size = 8
        if not config.input:
            config.input.add(name="X", data_type=FP32.number, dims=[3])
        if not config.output:
            config.output.add(name="y", data_type=FP32.number, dims=[3])


class TestCompletesWell(Completed):
    """Without a mistake."""

    complete = completing()


class TestKnowsNothing(Completed):
    """Its files say nothing: the example says so, and these tests are skipped."""

    def complete(config, path, backend):
        """Write nothing."""

    def made(self, folder, **changes):
        return super().made(folder, described=False, **changes)
