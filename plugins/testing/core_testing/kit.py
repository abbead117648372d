"""Kit: the base of the groups of tests of a backend: capabilities, and the example as a served model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import ClassVar

import pytest

from core_testing.call_log import CallLog, call_log_of
from core_testing.example import MODEL, Example, write_model
from core_testing.served import Served

Serve = Callable[..., Served]

IN_A_PROCESS = 'parameters { key: "EXECUTION_MODE" value { string_value: "process" } }'

CAPABILITIES = {
    "batching": "one execution answers several rows",
    "cpu": "the model runs without an accelerator",
    "dynamic_shape": "inputs of several shapes; needs the fixture other_shapes",
    "gpu": "the model runs on GPUs; tests have the mark gpu, and are skipped on machines without a GPU",
    "native": "execute is a C function that the instance provides, not a method of Python",
    "state": "implicit state of sequences; needs the fixture state_example",
    "streaming": "several answers to one request; needs the fixture stream_example",
    "strings": "tensors of BYTES; needs the fixture strings_example",
}


class Kit:
    """The base of every group of tests.

    supports      capabilities of the backend, words of CAPABILITIES; tests of others are skipped
    loads         number of loads in the tests for leaks; set fewer for a model that loads slowly
    more_config   text that the kit appends to every example's config.pbtxt
    """

    supports: ClassVar[set[str]] = {"batching", "cpu"}
    loads: ClassVar[int] = 50
    more_config: ClassVar[str] = ""

    def needs(self, *capabilities: str) -> None:
        """Skip the test unless the backend supports all of these."""
        for each in capabilities:
            if each not in self.supports:
                pytest.skip(f"supports has no '{each}': {CAPABILITIES[each]}")

    @pytest.fixture
    def example(self) -> Example:
        """A small model and its answer. Every backend defines it."""
        raise NotImplementedError(f"{type(self).__name__} must define the fixture 'example'")

    @pytest.fixture
    def stream_example(self) -> Example:
        """A model that sends several answers to a request; `expected` is their list. For "streaming"."""
        raise NotImplementedError(f"{type(self).__name__} must define 'stream_example'")

    @pytest.fixture
    def state_example(self) -> Example:
        """A model with sequence_batching and a state. For "state".

        `expected` is the list of the answers to the requests of one sequence, which all have the same inputs.
        """
        raise NotImplementedError(f"{type(self).__name__} must define 'state_example'")

    @pytest.fixture
    def strings_example(self) -> Example:
        """A model with inputs and outputs of BYTES. For "strings"."""
        raise NotImplementedError(f"{type(self).__name__} must define 'strings_example'")

    @pytest.fixture
    def other_shapes(self) -> list[Example]:
        """Examples of one model with inputs of different shapes. For "dynamic_shape"."""
        raise NotImplementedError(f"{type(self).__name__} must define 'other_shapes'")

    @pytest.fixture(autouse=True)
    def _known_capabilities(self) -> None:
        if unknown := self.supports - CAPABILITIES.keys():
            pytest.fail(f"no such capability: {sorted(unknown)}; there are {sorted(CAPABILITIES)}")

    @pytest.fixture
    def serve(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
        """serve(example, instances=1, load=True, gpu=False): serve the model of an example.

        instances   number of instances
        load        whether to load the model
        gpu         put the instances on GPU 0
        copies      names of several models, all of the example; they are loaded at the same time
        left_out    fields that config.pbtxt does not have
        apart       name under which the example's backend is installed: each instance runs in a child process
        """
        with ExitStack() as running:

            def start(
                example: Example,
                *,
                instances: int = 1,
                load: bool = True,
                gpu: bool = False,
                copies: Sequence[str] = (MODEL,),
                apart: str = "",
                left_out: Sequence[str] = (),
            ) -> Served:
                repository = tmp_path_factory.mktemp("repository")
                for name in copies:
                    folder = write_model(
                        example,
                        repository,
                        self.supports,
                        instances=instances,
                        gpu=gpu,
                        name=name,
                        backend=apart,
                        left_out=left_out,
                    )
                    with (folder / "config.pbtxt").open("a", encoding="utf-8") as config:
                        config.write(self.more_config + (IN_A_PROCESS if apart else ""))
                served = running.enter_context(
                    Served(
                        None if apart else example.backend,
                        repository,
                        model_load_thread_count=max(4, len(copies)),
                    )
                )
                if load and len(copies) == 1:
                    served.load(copies[0])
                elif load:
                    served.load_together(copies)
                return served

            yield start

    @pytest.fixture
    def served(self, serve: Serve, example: Example) -> Served:
        """The example, loaded, with one instance."""
        return serve(example)

    @pytest.fixture
    def calls(self, example: Example) -> Iterator[CallLog]:
        """The calls of core to the example's backend. Name it before `served`, else it misses the load."""
        with call_log_of(example.backend) as calls:
            yield calls
