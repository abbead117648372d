"""Models of engines in a server: `letters`, and engines of a few lines."""

import json

import numpy as np
from core_generate import Description, Engine, EngineModel, Event, engine_backend


def text(*values):
    return np.array([each.encode() for each in values], object)


def asked(prompt="abc", *flags, **sampling):
    found = {"text_input": text(prompt), "sampling_parameters": text(json.dumps(sampling))}
    return found | {each: np.array([True]) for each in flags}


def parameters(**values):
    return "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
        for name, value in values.items()
    )


def text_of(answers):
    return b"".join(each["text_output"][0] for each in answers).decode()


class Ended:
    def cancel(self):
        pass


def backend_of(engine, template=""):
    class Model(EngineModel):
        @classmethod
        def describe(cls, config, path, backend):
            return Description(supports=engine.supports, template=template)

        def make_engine(self):
            return engine()

    return engine_backend(Model)


class Plain(Engine):
    def generate(self, prompt, sampling, emit):
        emit(Event("text", finish="stop", prompt_tokens=1, count=1))
        return Ended()
