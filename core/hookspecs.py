"""Hooks for plugins: few, none of them on the way of a request unless a plugin asks for it.

A plugin is a module that an entry point of group `core.plugins` names; it implements a hook as

    @core.hookimpl
    def core_server_starting(server): ...

and takes the arguments that it needs, by name. A Backend may carry hooks as methods of the same form; they
count from the moment its first model asks for it. Plugins that were registered last are called first;
`@core.hookimpl(tryfirst=True)` and `trylast=True` change that. What core brings itself (core/builtin.py) is
asked after the plugins.

Of several workers (--workers=N) each is a process of its own, and calls every hook for itself.

docs/plugins.md is the page for authors. Who calls hooks: core.plugins, by `ask` (an exception is an error of
what was asked for) or by `tell` (an exception is logged with the plugin's name, and everybody else is told).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from core.backend import BatchRule, Model
    from core.caches import Cache
    from core.config import ModelConfig
    from core.lifecycle import ModelVersion
    from core.options import Flags, Options
    from core.pipeline.layers import Layer
    from core.pipeline.timing import BatchTiming
    from core.repository import Repository
    from core.repository.agents import RepositoryAgent
    from core.server import InferenceServer
    from core.telemetry.metrics.source import MetricSource
    from core.telemetry.tracing import TraceExporter

hookspec = pluggy.HookspecMarker("core")
hookimpl = pluggy.HookimplMarker("core")


@hookspec
def core_add_options(parser: Flags) -> None:
    """Once per process, on the main thread, before the command line is read: parser.add(name, default, help),
    or parser.add_section(section) for a core.options.Section.

    The values are in `server.options.added`, by name with underscores. A server inside a program takes them
    as arguments of core.Server, on the thread that makes it. An exception ends the start.
    """


@hookspec(firstresult=True)
def core_open_cache(name: str, settings: dict[str, str]) -> Cache | None:
    """Once, on the loop thread, for --cache-config=<name>,<setting>=<value>.

    Returns a core.caches.Cache, or None for the name of another cache. Raises CoreError for settings that
    are wrong, which ends the start.
    """


@hookspec(firstresult=True)
def core_open_repository(url: str, options: Options) -> Repository | None:
    """Once for each --model-repository with "://", on the loop thread, when the server is made.

    Returns a core.repository.Repository, or None for the URL of another plugin. Must not wait for the place:
    its `check` does, on a worker thread, when the server starts. An exception ends the start.
    """


@hookspec(firstresult=True)
def core_open_repository_agent(name: str) -> RepositoryAgent | None:
    """Once for each name in a `model_repository_agents`, on a worker thread, when a model first asks for it.

    Returns a core.RepositoryAgent, which all models that name it share, or None for the name of another
    agent. An exception fails the load.
    """


@hookspec(firstresult=True)
def core_run_server(options: Options, arguments: Sequence[str]) -> int | None:
    """Once, on the main thread, when the command line has been read and the log is set up.

    arguments   of the command line, without the program

    Serves in place of this process and returns the exit status, or returns None for a server of this process.
    An exception ends the start.
    """


@hookspec
def core_workers_starting(options: Options) -> None:
    """Once, with --workers=N only, on the loop thread of the process that starts the workers, before it does.

    For warnings about what each worker has for itself. An exception ends the start.
    """


@hookspec(firstresult=True)
def core_open_trace_exporter(
    mode: str, settings: Sequence[tuple[str, str]]
) -> TraceExporter | None:
    """Once per server, on the loop thread, when the server is made.

    mode      of --trace-config=mode=<mode>; "triton" without that option
    settings  (name, value) of each --trace-config=<mode>,<name>=<value>, in their order

    Returns a core.telemetry.tracing.TraceExporter, or None for a mode of another plugin. A plugin takes
    precedence over the trace files of mode triton. An exception, such as CoreError for an invalid setting,
    ends the start.
    """


@hookspec
def core_open_metric_source(options: Options) -> MetricSource | None:
    """Once per server, on the loop thread, when the server is made; and for the tables of docs/metrics.md.

    Returns a core.telemetry.metrics.source.MetricSource, or None for no metrics with these options. Each
    scrape asks it for its families. An exception ends the start.
    """


@hookspec
def core_server_starting(server: InferenceServer) -> None:
    """Once per server, on the loop thread, before frontends open and the first model loads.

    An exception ends the start.
    """


@hookspec
def core_server_stopping(server: InferenceServer) -> None:
    """Once per server, on the loop thread, after the last reply and the last model.

    Not when the server had to be left behind because --exit-timeout-secs had passed.
    """


@hookspec(firstresult=True)
def core_complete_config(config: ModelConfig, path: Path) -> ModelConfig | None:
    """Once per load of a version, on a worker thread, before the backend's own complete().

    config   what config.pbtxt says, with name and backend; may be changed and returned
    path     the version's directory

    Returns the configuration with what the model's files know, or None for somebody else's model. Taken from
    it is what a backend may complete too: inputs, outputs, batching. Not called for ensembles, and not with
    --disable-auto-complete-config. An exception fails the load.
    """


@hookspec
def core_layers(model: Model) -> Sequence[Layer] | None:
    """Once per load of a version, on the loop thread, when its instances are about to open.

    Returns layers to put around what core does with an admitted request, the outermost first, or None. A
    layer is a function `layer(handler) -> handler`; a handler takes an InferenceRequest and returns its Reply
    (core.pipeline.layers). They are called for each request of that model, on the loop thread, and for those
    of no other model. Not for ensembles: the models of their steps have them. An exception fails the load.
    """


@hookspec(firstresult=True)
def core_batch_rule(model: Model) -> Callable[[], BatchRule] | None:
    """Once per load of a version, on the loop thread, when its instances are about to open; for models that
    have no rule of their own.

    Returns a function that gives a rule for one batch, as `core.Model.batch_rule` does, or None for a model
    of somebody else. It is called for each batch that dynamic batching looks at. An exception of the hook
    fails the load.
    """


@hookspec
def core_model_changed(model: ModelVersion, state: str, reason: str) -> None:
    """Each time that a version changes its state, on the loop thread; must not block.

    state    "loading", "ready", "unloading", "gone" (unloaded), "failed" (it could not load)
    reason   why it failed, else ""

    The version tells name, version, config and more. A load that is tried again is "loading" again.
    """


@hookspec
def core_batch_done(model: Model, timing: BatchTiming) -> None:
    """After each execution, where it ran: on the instance's thread, or on the loop. Keep it short.

    Only for models that were loaded when somebody listened already; with no listener it costs nothing.
    """


@hookspec
def core_failed(error: BaseException, where: str) -> None:
    """An error that is only in the log, because nobody waits for what failed. Any thread; must not block.

    where   the line of the log, such as "closing instance 'm_0' failed"
    """
