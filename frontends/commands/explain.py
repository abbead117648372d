"""Explain: describes the stages that a request for a model passes, one line of text for each.

OfflineModel ─► a Chain that is composed and not opened ─► [explain].  The stages with a handler are read from
the same Chain that a load composes, so that the text cannot differ from what the server does.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from core import plugins
from core.backend import Backend, Model, implements
from core.caches import open_cache
from core.config import InputSpec, ModelConfig, OutputSpec, Signature
from core.config.conditions import needs_arranging
from core.lifecycle import ModelVersion
from core.options import Options
from core.pipeline import Chain
from core.pipeline.batching.batcher import Batcher
from core.pipeline.batching.order import PreserveOrder
from core.pipeline.batching.settings import batch_limits
from core.pipeline.cache import Cached
from core.pipeline.ensemble import steps_of
from core.pipeline.instances.pool import runner_for
from core.pipeline.instances.runner import RunnerOwner
from core.pipeline.instances.specs import instance_specs
from core.pipeline.layers import Layered
from core.pipeline.sequence import SequenceScheduler
from core.pipeline.services import ChainServices
from core.request import NEWEST
from core.system.host_policy import HostPolicies
from frontends.commands.offline import OfflineModel

Line = tuple[str, str, str]
"""Room, where its code is, what it does for this model."""

_WHERE = {
    "ThreadRunner": "each on a thread of its own",
    "InlineRunner": "on the event loop",
    "LoopRunner": "on the event loop, as a coroutine",
    "AutoRunner": "on a thread while executions are long, on the event loop while they are short",
    "CallbackRunner": "begun on the event loop, done elsewhere",
}


def explain(model: OfflineModel, options: Options) -> str:
    """Return a text: a line that names the model version, then one for each stage that its requests pass.

    The steps of an ensemble are stages, too. Call it on the main thread, while no event loop runs.
    """
    head = f"model '{model.version.name}' version {model.version.version}"
    if model.backend is None:
        steps = _ensemble(model.config, model.signature)
        return "\n".join([f"{head}, an ensemble", "", *_aligned(steps)])
    plugins.load_hooks()
    made = _made(model, model.backend)
    with closing(asyncio.new_event_loop()) as loop:
        # An empty cache: the server's options decide about the real one.
        cache = open_cache(options.cache_config or {"local": {"size": str(1 << 20)}})
        chain = Chain(model.config, model.signature, ChainServices(loop, cache=cache))
        layering = _listening("core_layers")
        lines = list(_rooms(made, model.signature, chain.handlers, layering, options, loop))
    return "\n".join([f"{head}, backend '{model.config.backend}'", "", *_aligned(lines)])


def stages(version: ModelVersion, options: Options) -> list[Line]:
    """Return (name, file of its code, what it does for the model) of each stage of a loaded version.

    Worker thread: it reads files.
    """
    if version.model is None:
        return list(_ensemble(version.config, version.signature))
    assert isinstance(version.chain, Chain)
    handlers = version.chain.handlers
    layered = any(isinstance(each, Layered) for each in handlers)
    layering = _listening("core_layers") if layered else []
    with closing(asyncio.new_event_loop()) as loop:
        return list(_rooms(version.model, version.signature, handlers, layering, options, loop))


def _rooms(
    model: Model,
    signature: Signature,
    handlers: Iterable[object],
    layering: Sequence[str],
    options: Options,
    loop: asyncio.AbstractEventLoop,
) -> Iterator[Line]:
    config, backend = model.config, model.backend
    yield "admit", "core/pipeline/admit.py", _tensors(signature)
    if layering:
        text = f"asked of {', '.join(layering)} when the model loads"
        yield "layers", "core/pipeline/layers.py", text
    for handler in handlers:
        if not isinstance(handler, Layered):
            yield _handler(handler, config, bool(options.cache_config), backend)
    yield "gather", "core/native/gather.pyx", "one array for each input, without the GIL"
    yield "execute", _file_of(backend), _instances(model, loop)
    yield "split", "core/pipeline/answers/split.py", "rows of outputs back to their requests"
    yield "deliver", "core/pipeline/answers/delivery.py", "answers to the event loop, in one go"


def _listening(hook: str) -> list[str]:
    """Return the names of the plugins that implement a hook, in call order."""
    found = getattr(plugins.hooks().hook, hook).get_hookimpls()
    return [each.plugin_name for each in reversed(found)]


def _handler(handler: object, config: ModelConfig, cached: bool, backend: Backend) -> Line:
    place = type(handler).__module__.replace(".", "/") + ".py"
    if isinstance(handler, Cached):
        text = "" if cached else "; nowhere without --cache-config"
        return "cache", place, f"answers that were given before{text}"
    if isinstance(handler, PreserveOrder):
        return "in order", place, "answers leave in the order in which their requests came"
    if isinstance(handler, SequenceScheduler):
        return "sequences", "core/pipeline/sequence/", _sequences(config)
    assert isinstance(handler, Batcher)
    return "batcher", place, _batching(config, backend)


def _batching(config: ModelConfig, backend: Backend) -> str:
    limits = batch_limits(config)
    if limits.alone:
        return "requests execute one by one"
    preferred = ", ".join(map(str, limits.preferred))
    words = [f"up to {limits.most_rows} rows in one execution"]
    words += [f"rather {preferred}"] if preferred else []
    delay_us = limits.delay_ns // 1000
    words.append(f"the first waits at most {delay_us} µs" if delay_us else "nobody waits for more")
    if implements(backend.model, Model, "batch_rule"):
        words.append("a rule of the model's")
    elif listening := _listening("core_batch_rule"):
        words.append(f"{', '.join(listening)} may have a rule")
    levels = config.dynamic_batching.priority_levels
    return "; ".join([*words, *([f"{levels} priorities"] if levels else [])])


def _sequences(config: ModelConfig) -> str:
    sequence = config.sequence_batching
    strategy = sequence.WhichOneof("strategy_choice") or "direct"
    states = ", ".join(state.input_name for state in sequence.state)
    kept = f"; keeps {states}" if states else ""
    return f"strategy {strategy}{kept}; idle ones end after {sequence.max_sequence_idle_microseconds} µs"


def _instances(model: Model, loop: asyncio.AbstractEventLoop) -> str:
    specs = instance_specs(model.config, HostPolicies({}))
    where = sorted({f"{spec.device}" for spec in specs})
    names = ", ".join(spec.name for spec in specs[:4]) + (", …" if len(specs) > 4 else "")
    worker = runner_for(specs[0].instance(model), loop, RunnerOwner())
    count = "1 instance" if len(specs) == 1 else f"{len(specs)} instances"
    return f"{count} ({names}) on {', '.join(where)}; {_WHERE[type(worker).__name__]}"


def _made(model: OfflineModel, backend: Backend) -> Model:
    made: Model = backend.model()
    made.name, made.version = model.version.name, model.version.version
    made.config, made.backend = model.config, backend
    made.path, made.directory = model.version.path, model.version.directory
    return made


def tensors(model: OfflineModel) -> str:
    """Return a model's inputs and outputs on one line, such as "x FP32[-1, 4] → y FP32[-1, 2]".

    The first size is that of the batch if the model has batches; -1 is any size.
    """
    return _tensors(model.signature)


def _tensors(signature: Signature) -> str:
    batch = (-1,) if signature.max_batch_size else ()

    def shape(spec: InputSpec | OutputSpec) -> list[int]:
        has_batch = not (isinstance(spec, InputSpec) and spec.shape_tensor)
        return [*(batch if has_batch else ()), *spec.dims]

    def shown(specs: Iterable[InputSpec | OutputSpec]) -> str:
        return ", ".join(f"{each.name} {each.dtype.name}{shape(each)}" for each in specs)

    return f"{shown(signature.inputs.values())} → {shown(signature.outputs.values())}"


def _ensemble(config: ModelConfig, signature: Signature) -> Iterator[Line]:
    yield "admit", "core/pipeline/admit.py", _tensors(signature)
    if config.response_cache.enable:
        yield "cache", "core/pipeline/cache.py", "answers that were given before"
    for step in steps_of(config):
        version = "" if step.version == NEWEST else f" version {step.version}"
        taken = ", ".join(f"{tensor} as {name}" for name, tensor in step.inputs.items())
        given = ", ".join(f"{name} as {tensor}" for name, tensor in step.outputs.items())
        condition = f", if {step.condition} is {step.runs_if}" if step.condition else ""
        arranged = "".join(
            f", {name} {text}" for name, text in _arranged(config, "step", step.index)
        )
        text = f"model '{step.model}'{version}: {taken} → {given}{condition or arranged}"
        yield f"step {step.index}", "core/pipeline/ensemble/run.py", text
    for number in sorted({int(key[5:-1]) for key in _groups(config) if key.startswith("loop[")}):
        said = (
            f"{name.replace('_', ' ')} {text}" for name, text in _arranged(config, "loop", number)
        )
        yield f"loop {number}", "core/lifecycle/ensemble.py", ", ".join(said)


def _groups(config: ModelConfig) -> set[str]:
    """Return the beginnings of the parameters that say how steps follow each other: "step[1]", "loop[0]"."""
    found = (re.match(r"((?:step|loop)\[\d+\])\.", key) for key in config.parameters)
    return {match[1] for match in found if match}


def _arranged(config: ModelConfig, kind: str, number: int) -> Iterator[tuple[str, str]]:
    """Yield (end of the key, such as "if", value) of each parameter that a plugin reads for a step or a loop.

    kind   "step" or "loop"; its number is `number`
    """
    order = ("if", "unless", "else", "steps", "while", "max_turns", "at_max_turns", "carry")
    if needs_arranging(config):
        for name in order:
            if (key := f"{kind}[{number}].{name}") in config.parameters:
                yield name, config.parameters[key].string_value


def _file_of(backend: Backend) -> str:
    """Return the path of the file that runs a backend's models.

    It is plugins.file_of(backend) for a backend from --backend-directory, else the source file of the
    instance class, from its top package on; the name of the module if the class has no source file.
    """
    if (of_folder := plugins.file_of(backend)) is not None:
        return str(of_folder)
    try:
        file = Path(inspect.getfile(backend.instance))
    except (TypeError, OSError):
        return backend.instance.__module__
    package = backend.instance.__module__.partition(".")[0]
    return "/".join(file.parts[file.parts.index(package) :]) if package in file.parts else file.name


def _aligned(lines: Iterator[Line] | list[Line]) -> list[str]:
    rows = list(lines)
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return [f"  ─► {name:{widths[0]}}  {place:{widths[1]}}  {text}" for name, place, text in rows]
