"""Hooks for plugins. No hook runs for each request, except the layers that a plugin adds.

A plugin is a module that an entry point of group `core.plugins` names. It implements a hook as

    @core.hookimpl
    def core_server_starting(server): ...

and takes the arguments that it needs, by name. A Backend may implement hooks as methods of the same form;
they are active from the first load of one of its models. The plugin registered last is called first;
`@core.hookimpl(tryfirst=True)` and `trylast=True` change the order. Core's own implementations
(core/builtin.py) are called last.

With --workers=N each worker is a separate process and calls every hook.

docs/write/plugins.md is the page for authors. core.plugins calls the hooks: `ask` raises the exception of a
hook, `tell` logs it with the plugin's name and calls the other plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import logging
    from contextlib import AbstractAsyncContextManager

    from core.backend import BatchRule, Model
    from core.caches import Cache
    from core.config import ModelConfig, Signature
    from core.lifecycle import ModelVersion
    from core.lifecycle.ensemble import Arrangement
    from core.lifecycle.host import ServedModels
    from core.options import Flags, Options
    from core.pipeline.ensemble import Step
    from core.pipeline.layers import Layer
    from core.pipeline.timing import BatchTiming
    from core.repository import Listing, Repository
    from core.repository.agents import RepositoryAgent
    from core.server import InferenceServer
    from core.telemetry.metrics.source import MetricSource
    from core.telemetry.tracing import TraceExporter

hookspec = pluggy.HookspecMarker("core")
hookimpl = pluggy.HookimplMarker("core")


@hookspec
def core_add_options(parser: Flags) -> None:
    """Add options to the command line: parser.add(name, default, help), or parser.add_section(section) for a
    core.options.Section.

    Called once per process, on the main thread, before the command line is parsed. The values are in
    `server.options.added`, by name with underscores. A server inside a program takes them as arguments of
    core.Server; the hook then runs for each one, on the thread that creates it. An exception ends the start.
    """


@hookspec(firstresult=True)
def core_open_cache(name: str, settings: dict[str, str]) -> Cache | None:
    """Open the cache of --cache-config=<name>,<setting>=<value>.

    Called once, on the loop thread. Return a core.caches.Cache, or None for the name of another cache. Raise
    CoreError for invalid settings; it ends the start.
    """


@hookspec(firstresult=True)
def core_open_repository(url: str, options: Options) -> Repository | None:
    """Open the repository of a --model-repository with "://".

    Called once for each, on the loop thread, when the server is created. Return a core.repository.Repository,
    or None for the URL of another plugin. Must not access the location: `Repository.check` does so on a
    worker thread when the server starts. An exception ends the start.
    """


@hookspec(firstresult=True)
def core_explain_layout(name: str, folder: str, listing: Listing) -> str | None:
    """Explain why the folder of a model cannot be loaded: what is wrong with its layout, and how to mend it.

    folder    path or URL
    listing   what lies below the folder (core.repository.Listing)

    Called on a worker thread, at each look at a model without versions or without a known file. Return the
    end of the error, with commands between backticks; None if unknown. An exception fails the load.
    """


@hookspec(firstresult=True)
def core_open_repository_agent(name: str) -> RepositoryAgent | None:
    """Open the repository agent of a name in `model_repository_agents`.

    Called once for each name, on a worker thread, at the first load that uses it. Return a
    core.RepositoryAgent, which all models that name it share, or None for the name of another agent. An
    exception fails the load.
    """


@hookspec(firstresult=True)
def core_open_log(options: Options, worker: int) -> logging.Handler | None:
    """Open a handler that shows the log on the console in place of Triton's lines; a log file keeps these.

    worker   number of this process among several workers; 0 for the only process, or the one that starts them

    Called once per process, on the main thread, before the first record. An exception ends the start.
    """


@hookspec(firstresult=True)
def core_run_server(options: Options, arguments: Sequence[str]) -> int | None:
    """Serve in place of this process.

    arguments   of the command line, without the program

    Called once, on the main thread, after the command line is parsed and the log is set up. Return the exit
    status when the server has ended, or None to let this process serve. An exception ends the start.
    """


@hookspec
def core_workers_starting(options: Options) -> None:
    """Handle that the supervisor is about to start workers, for example to warn about per-worker settings.

    Called once, with --workers=N only, on the loop thread of the supervisor. An exception ends the start.
    """


@hookspec(firstresult=True)
def core_open_trace_exporter(
    mode: str, settings: Sequence[tuple[str, str]], options: Options
) -> TraceExporter | None:
    """Open the trace exporter of a mode.

    mode      of --trace-config=mode=<mode>; "triton" without that option
    settings  (name, value) of each --trace-config=<mode>,<name>=<value>, in their order
    options   of the server

    Called once per server, on the loop thread, when the server is created. Return a
    core.telemetry.tracing.TraceExporter, or None for a mode of another plugin. A plugin takes precedence over
    the trace files of mode triton. An exception, such as CoreError for an invalid setting, ends the start.
    """


@hookspec
def core_open_metric_source(options: Options, worker: int | None) -> MetricSource | None:
    """Open a source of metrics.

    worker   number of this process among several workers, for a label; None for the only process

    Called once per server, on the loop thread, when the server is created; also to generate the tables of
    docs/operate/metrics.md. Return a core.telemetry.metrics.source.MetricSource, or None for no metrics with
    these options. Each scrape calls its `families`. An exception ends the start.
    """


@hookspec
def core_server_starting(server: InferenceServer) -> None:
    """Handle that the server starts: before frontends open and the first model loads. Once per server.

    Called on the loop thread. `server.control.add(area)` adds control operations here. An exception ends the
    start.
    """


@hookspec
def core_models_loaded(server: InferenceServer) -> None:
    """Handle that the models of the start are loaded or have failed. Only in the first of several workers.

    Called once per server program, on the loop thread. An exception is logged.
    """


@hookspec
def core_server_stopping(server: InferenceServer) -> None:
    """Handle that the server has stopped: after the last response, with all models unloaded.

    Called once per server, on the loop thread. Not called if the process exits because --exit-timeout-secs
    has passed.
    """


@hookspec(firstresult=True)
def core_complete_config(config: ModelConfig, path: Path) -> ModelConfig | None:
    """Complete the configuration of a model from its files.

    config   from config.pbtxt, with name and backend; may be changed and returned
    path     the version's directory

    Called at each load of a version, or change of its instances, on a worker thread, before the backend's
    complete(). Return the completed configuration, or None for a model of another plugin. Core takes over the
    fields that a backend may complete: inputs, outputs, batching, parameters. Not called for ensembles, and
    not with --disable-auto-complete-config. An exception fails the load.
    """


@hookspec(firstresult=True)
def core_arrange_ensemble(
    config: ModelConfig, signature: Signature, steps: list[Step], models: Sequence[Signature | None]
) -> Arrangement | None:
    """Arrange the steps of an ensemble with a parameter `loop[…`, `step[….else` or a condition beyond a name.

    signature   of the ensemble
    steps       of the configuration, without conditions; must not be changed
    models      the signature of each step's model; None for one that only a load can tell

    Called twice per load, on the loop thread, and by commands on the main thread. Return a
    core.governing.Arrangement, or None for parameters of another plugin. An exception fails the load.
    """


@hookspec
def core_around_load(
    version: ModelVersion, server: ServedModels
) -> AbstractAsyncContextManager[object] | None:
    """Return a context manager around the load of a version; or None.

    server   `server.models` of the other hooks

    Called at each try to load a version, on the loop thread, with configuration and signature complete. Core
    enters it before the files are loaded, and leaves it when the instances are open, or with the error of the
    load. Entering may wait. An exception fails the load; core.errors.AtRest leaves the version unloaded.
    """


@hookspec
def core_layers(model: Model) -> Sequence[Layer] | None:
    """Return layers around the handler of a model's admitted requests, the outermost first; or None.

    Called once per load of a version, on the loop thread, before its instances open. A layer is a function
    `layer(handler) -> handler`; a handler takes an InferenceRequest and returns its Reply
    (core.pipeline.layers). Layers run for each request of this model, on the loop thread. Not called for
    ensembles: the models of their steps have layers. An exception fails the load.
    """


@hookspec(firstresult=True)
def core_batch_rule(model: Model) -> Callable[[], BatchRule] | None:
    """Return a function that returns the rule for one batch, like `core.Model.batch_rule`; or None.

    Called once per load of a version without its own rule, on the loop thread, before its instances open.
    Return None for a model of another plugin. Dynamic batching calls the function for each batch. An
    exception of the hook fails the load.
    """


@hookspec
def core_model_changed(model: ModelVersion, state: str, reason: str) -> None:
    """Handle that a version has changed its state. Called on the loop thread; must not block.

    model    the version: its name, version and more; it has its config once it was ready
    state    "loading", "ready", "unloading", "gone" (unloaded), "failed" (it could not load)
    reason   why it failed, else ""

    A repeated load is "loading" again.
    """


@hookspec
def core_batch_done(model: Model, timing: BatchTiming) -> None:
    """Handle the end of an execution. Called on the thread that ran it: the instance's, or the loop's.

    Keep it short. Called only for models that were loaded after the plugin was registered. Without such a
    plugin it costs nothing.
    """


@hookspec
def core_failed(error: BaseException, where: str) -> None:
    """Handle an error that the server logs with its exception. Called on any thread; must not block.

    where   the message of the log, such as "closing instance 'm_0' failed"
    """
