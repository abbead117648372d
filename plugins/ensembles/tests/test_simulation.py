"""Random ensembles with loops, conditions and fallbacks give what an interpreter of a few lines gives.

The interpreter runs the steps one after the other, in plain Python, by the rules of docs/serve/ensembles.md.
"""

import operator
import os
import struct
from dataclasses import dataclass, field

import numpy as np
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from core.errors import CoreError
from core.request import InferenceRequest
from core.tensor import Tensor

from .conftest import ensemble

LENGTH = 2  # of all tensors
OMITTED = "w"  # the input that a client may omit
MOST = 20  # the model `risky` fails beyond


def f32(value):
    """Round as FP32 does."""
    return struct.unpack("f", struct.pack("f", value))[0]


# What each model does with one element of each input; and the names of its inputs.
ONE = {"half": lambda x: x / 2, "inc": lambda x: x + 1, "neg": lambda x: -x, "risky": lambda x: x}
INPUTS = {**dict.fromkeys(ONE, ("x",)), "add": ("a", "b"), "join": ("a", "b")}
OPTIONAL = {"join"}  # takes the inputs that there are
COMPARE = {"<": operator.lt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
REDUCE = {"max": max, "min": min, "sum": sum}


class Failure(Exception):
    """The ensemble answers with an error."""


# programs ----------------------------------------------------------------------------------------


@dataclass
class Choice:
    """How a step or a loop runs: (kind, expression) or None; output → the tensor that stands for it."""

    condition: tuple | None = None
    fallbacks: dict = field(default_factory=dict)


@dataclass
class Step:
    model: str
    inputs: list
    output: str
    choice: Choice

    @property
    def made(self):
        return [self.output]

    def needs(self):
        """Return the tensors without which it cannot run, and all that it reads."""
        return set() if self.model in OPTIONAL else set(self.inputs), set(self.inputs)


@dataclass
class Loop:
    body: list
    again: tuple | None
    most: int
    strict: bool
    carry: list  # of (new, old)
    choice: Choice

    @property
    def made(self):
        return [name for node in self.body for name in node.made]

    def needs(self):
        must, reads = set(), {old for _, old in self.carry} | names_in(self.again)
        for node in self.body:
            needed, read = node.needs()
            must |= needed
            reads |= read | names_in(node.choice.condition and node.choice.condition[1])
            reads |= set(node.choice.fallbacks.values())
        return must - set(self.made), reads - set(self.made)


def names_in(expression):
    """Return the tensors that an expression reads."""
    if expression is None:
        return set()
    kind, *parts = expression
    if kind in ("and", "or", "not"):
        return set().union(*map(names_in, parts))
    return {parts[0]}


def text_of(expression):
    kind, *parts = expression
    if kind == "present":
        return f"present({parts[0]})"
    if kind == "not":
        return f"not ({text_of(parts[0])})"
    if kind in ("and", "or"):
        return f"({text_of(parts[0])}) {kind} ({text_of(parts[1])})"
    name, compare, number = parts
    if kind in REDUCE:
        return f"{kind}({name}) {compare} {number}"
    return f"{kind}({name} {compare} {number})"


@st.composite
def expressions(draw, names, depth=2):
    name, number = draw(st.sampled_from(names)), draw(st.integers(-3, 6))
    compare = draw(st.sampled_from(sorted(COMPARE)))
    kinds = [*REDUCE, "any", "all", "present"] + (["not", "and", "or"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "present":
        return kind, name
    if kind == "not":
        return kind, draw(expressions(names, depth - 1))
    if kind in ("and", "or"):
        return kind, draw(expressions(names, depth - 1)), draw(expressions(names, depth - 1))
    return kind, name, compare, number


@st.composite
def programs(draw):
    """A list of steps and loops that makes the tensors t0, t1, … from x and, if it is there, w."""
    counter = iter(range(1000))

    def choice(visible, made):
        condition = None
        if draw(st.integers(0, 2)) == 0:
            condition = (draw(st.sampled_from(["if", "unless"])), draw(expressions(visible)))
        fallbacks = {}
        if draw(st.integers(0, 3)) == 0:
            fallbacks[draw(st.sampled_from(made))] = draw(st.sampled_from(visible))
        return Choice(condition, fallbacks)

    def step(visible):
        model = draw(st.sampled_from(sorted(INPUTS)))
        output = f"t{next(counter)}"
        inputs = [draw(st.sampled_from(visible)) for _ in INPUTS[model]]
        return Step(model, inputs, output, choice(visible, [output]))

    def loop(visible, depth):
        body = nodes(visible, depth - 1)
        if len(body) == 1 and isinstance(body[0], Loop):  # two loops of the same steps
            body.append(step([*visible, *body[0].made]))
        made = [name for node in body for name in node.made]
        again = None
        if draw(st.integers(0, 3)):
            again = draw(expressions([*visible, *made]))
        carry = []
        for old in draw(st.lists(st.sampled_from(visible), max_size=2, unique=True)):
            free = [name for name in made if name not in dict(carry)]
            if free:
                carry.append((draw(st.sampled_from(free)), old))
        strict = again is not None and draw(st.integers(0, 5)) == 0
        return Loop(body, again, draw(st.integers(1, 4)), strict, carry, choice(visible, made))

    def nodes(visible, depth):
        found = []
        for _ in range(draw(st.integers(1, 3))):
            seen = [*visible, *(name for node in found for name in node.made)]
            found.append(loop(seen, depth) if depth and draw(st.booleans()) else step(seen))
        return found

    # The last step reads both inputs, since those that nothing reads are refused.
    return [*nodes(["x", "w"], 2), Step("join", ["x", "w"], f"t{next(counter)}", Choice())]


def configured(program):
    """Return the text of config.pbtxt, all of whose tensors are outputs."""
    steps, parameters, loops = [], {}, []

    def choose(key, choice):
        if choice.condition is not None:
            kind, expression = choice.condition
            parameters[f"{key}_{kind}"] = text_of(expression)
        if choice.fallbacks:
            pairs = (f"{theirs} -> {ours}" for ours, theirs in choice.fallbacks.items())
            parameters[f"{key}_else"] = ", ".join(pairs)

    def add(node):
        if isinstance(node, Step):
            maps = zip(INPUTS[node.model], node.inputs, strict=True)
            inputs = ", ".join(f"{theirs}={ours}" for theirs, ours in maps)
            choose(f"step{len(steps)}", node.choice)
            steps.append(f"{node.model} {inputs} -> y={node.output}")
            return
        key, first = f"loop{len(loops)}", len(steps)
        loops.append(node)
        for each in node.body:
            add(each)
        parameters[f"{key}_steps"] = f"{first}-{len(steps) - 1}"
        parameters[f"{key}_max_turns"] = str(node.most)
        if node.again is not None:
            parameters[f"{key}_while"] = text_of(node.again)
            if not node.strict:
                parameters[f"{key}_at_max_turns"] = "last"
        if node.carry:
            parameters[f"{key}_carry"] = ", ".join(f"{new} -> {old}" for new, old in node.carry)
        choose(key, node.choice)

    for node in program:
        add(node)
    outputs = ", ".join(f"{name} FP32[-1]" for node in program for name in node.made)
    return ensemble(f"x FP32[-1], w FP32[-1]? -> {outputs}", *steps, **parameters)


# the interpreter ---------------------------------------------------------------------------------


def holds(expression, tensors):
    kind, *parts = expression
    if kind == "present":
        return parts[0] in tensors
    if kind == "not":
        return not holds(parts[0], tensors)
    if kind == "and":
        return holds(parts[0], tensors) and holds(parts[1], tensors)
    if kind == "or":
        return holds(parts[0], tensors) or holds(parts[1], tensors)
    name, compare, number = parts
    if name not in tensors:
        return False
    values, compare = tensors[name], COMPARE[compare]
    if kind in REDUCE:
        return compare(REDUCE[kind](values), number)
    return {"any": any, "all": all}[kind](compare(value, number) for value in values)


def runs(node, tensors):
    if node.choice.condition is not None:
        kind, expression = node.choice.condition
        if holds(expression, tensors) is not (kind == "if"):
            return False
    must, reads = node.needs()
    absent = reads - tensors.keys() - {OMITTED}
    if must & absent or (absent and reads.isdisjoint(tensors)):
        return False
    # An input that the client omits skips no step: its model may do without it, or refuse the request.
    if isinstance(node, Step) and (must - tensors.keys() or reads.isdisjoint(tensors)):
        raise Failure
    return True


def execute(program, tensors):
    """Run a program; add what it makes to `tensors`."""
    for node in program:
        if runs(node, tensors):
            found = computed(node, tensors) if isinstance(node, Step) else turned(node, tensors)
        else:
            found = {}
        for ours, theirs in node.choice.fallbacks.items():
            if ours not in found and theirs in tensors:
                found[ours] = tensors[theirs]
        tensors.update(found)


def computed(step, tensors):
    given = [tensors[name] for name in step.inputs if name in tensors]
    if step.model == "risky" and max(given[0]) > MOST:
        raise Failure
    one = ONE.get(step.model, lambda *values: sum(values))
    return {step.output: [f32(one(*values)) for values in zip(*given, strict=True)]}


def turned(loop, tensors):
    begin = dict(tensors)
    for number in range(1, loop.most + 1):
        turn = dict(begin)
        execute(loop.body, turn)
        again = loop.again is None or holds(loop.again, turn)
        if not again:
            break
        if number == loop.most and loop.again is not None and loop.strict:
            raise Failure
        begin.update({old: turn[new] for new, old in loop.carry if new in turn})
    return {name: turn[name] for name in loop.made if name in turn}


def expected(program, inputs):
    """Return output → values; None for an error."""
    tensors = {name: list(map(float, values)) for name, values in inputs.items()}
    try:
        execute(program, tensors)
    except Failure:
        return None
    made = {name: tensors[name] for name in tensors.keys() - {"x", "w"}}
    return made or None  # without any output, the answer is an error


# the comparison ----------------------------------------------------------------------------------


async def add_models(models):
    """Add the models of this test to those that are there."""

    def fails_beyond(x):
        return ValueError("too risky") if x.max() > MOST else {"y": x}

    def joined(**given):
        if not given:
            return ValueError("nothing to join")
        return {"y": np.sum(list(given.values()), 0, np.float32)}

    for name, function in ONE.items():
        call = fails_beyond if name == "risky" else lambda x, of=function: {"y": of(x)}
        await models.add(name, "x FP32[-1] -> y FP32[-1]", call)
    await models.add("add", "a FP32[-1], b FP32[-1] -> y FP32[-1]", lambda a, b: {"y": a + b})
    await models.add("join", "a FP32[-1]?, b FP32[-1]? -> y FP32[-1]", joined)


async def answered(chain, inputs):
    """Return output → values; None for an error."""
    tensors = {name: Tensor.of(name, np.array(v, np.float32)) for name, v in inputs.items()}
    try:
        response = await chain.handler(InferenceRequest("e", tensors))
    except CoreError as error:
        note(error.message)
        return None
    return {tensor.name: tensor.array.tolist() for tensor in response.outputs}


VALUES = st.lists(st.integers(-8, 8), min_size=LENGTH, max_size=LENGTH)


# Without shrinking, which takes minutes: the notes of a failure have the text of the ensemble.
@settings(
    max_examples=int(os.environ.get("CORE_ENSEMBLE_EXAMPLES", "60")),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(program=programs(), x=VALUES, w=VALUES)
async def test_random_ensembles_give_what_a_simple_interpreter_gives(opened, models, program, x, w):
    if "half" not in models.chains:
        await add_models(models)
    text = configured(program)
    note(text)
    chain = await opened(text)

    for inputs in ({"x": x, "w": w}, {"x": x}):
        assert await answered(chain, inputs) == expected(program, inputs)
        assert chain.in_flight == 0
