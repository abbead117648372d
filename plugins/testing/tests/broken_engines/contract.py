"""The base of the broken engines: letters behind a method that a mistake replaces."""

import pytest
from backend_testing.letters import Letters, LettersModel
from core_generate import engine_backend
from core_testing.engines import EngineConformance, EngineExample

MISTAKES = {}  # test of the kit → file::class that must fail in it
CONTEXT = 512


def caught_by(*tests, context=CONTEXT, task="generate", contract=EngineConformance):
    """Register an engine as one that must fail in these tests, and return its class of tests."""

    def register(engine):
        class Model(LettersModel):
            def make_engine(self):
                return engine(context=context, delay_s=0.001)

        class Contract(contract):
            most = 4

            @pytest.fixture
            def engine_example(self, tmp_path):
                config = "".join(
                    f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
                    for key, value in (("context", context), ("task", task))
                )
                return EngineExample(engine_backend(Model), tmp_path, "abc", config)

        Contract.__name__ = Contract.__qualname__ = engine.__name__
        file = engine.__module__.rpartition(".")[2]
        MISTAKES.update(dict.fromkeys(tests, f"{file}.py::{Contract.__name__}"))
        return Contract

    return register


class Changed(Letters):
    """Letters whose prompts, sampling or events a mistake changes."""

    def generate(self, prompt, sampling, emit):
        prompt, sampling = self.prompt(prompt), self.sampling(sampling)
        return super().generate(prompt, sampling, lambda event: self.emit(event, emit))

    def prompt(self, prompt):
        return prompt

    def sampling(self, sampling):
        return sampling

    def emit(self, event, emit):
        emit(event)
