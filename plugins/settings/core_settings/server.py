"""ServerSettings: the live settings of all models of one server, in one process.

control operation ─► plan ─► every process: [put] ─► ModelVersion.configure
load of a version ─► [overlay] ─► the configuration by which it is loaded
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core import config as configuration
from core import plugins
from core.config import ModelConfig
from core.control.audit import caller
from core.errors import CoreError, already_exists, invalid
from core.governing import ModelVersion
from core.repository import ModelSource
from core_settings.fields import LIMITER, Reader
from core_settings.files import SettingsFiles
from core_settings.live import Settings, as_text, configured, difference, live_part
from core_settings.options import SettingsOptions
from core_settings.state import State

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")

_UNCHANGED = State()


@dataclass(frozen=True)
class Plan:
    """A change of the settings of one model, which every process does or none.

    key     of the model
    state   after the change
    changes whether it differs from the state before
    text    what changes, "path from → to, …"; "" for nothing
    source  the files of the model
    """

    key: str
    state: State
    changes: bool
    text: str
    source: ModelSource


class ServerSettings:
    """The live settings of one server. Event loop only, but for `overlay`.

    files   where settings outlive the server
    """

    def __init__(self, server: InferenceServer):
        self.files = SettingsFiles(SettingsOptions.of(server.options))
        self._states: dict[str, State] = {}  # by key; a model without changes has none
        self._problems: dict[str, str] = {}  # key → why its settings are not in force
        self._reading = threading.Lock()
        self._manager = server.manager
        self._limited = server.options.rate_limit == "execution_count"
        self._cached = server.cache is not None
        server.manager.overlay_by(self.overlay, self.refresh)

    # loads -----------------------------------------------------------------------

    def overlay(self, source: ModelSource, config: ModelConfig) -> ModelConfig:
        """Return the configuration of a version with the settings of its model. Worker thread.

        Settings that do not fit any more, since the files have changed, are left out, and the log says so.
        Raises CoreError(INVALID) for a wrong file of --settings-read: the load fails.
        """
        key = str(source.key)
        with self._reading:  # versions of a model load together
            self._take(key, self.files.read(source))
        try:
            found = self._configured(config, self.state(key).settings)
        except CoreError as error:
            self._leave_out(key, error)
            return config
        self._problems.pop(key, None)
        return found

    def _leave_out(self, key: str, error: CoreError) -> None:
        self._problems[key] = error.message
        logger.error("live settings of model '%s' are left out: %s", key, error.message)

    def _take(self, key: str, read: State | None) -> None:
        """Take the settings of a file, but not those of an earlier number: another worker was late."""
        before = self.state(key)
        if read is None or before.knows(read):
            return
        if read.number > before.number:  # of another server; a person may have edited it since
            before = self._states[key] = read.as_written
        if read.settings != before.settings:
            changes = difference(before.settings, read.settings)
            self._states[key] = before.after(read.settings, "read", "the file", changes)

    def refresh(self, version: ModelVersion) -> None:
        """Put settings in force that have changed while a version, or other instances of it, loaded."""
        key = version.key
        if key not in self._states or not any(each is version for each in self._manager.versions()):
            return  # of another server in this process
        try:
            config = self._configured(version.plain, self.state(key).settings)
            if config != version.config:
                version.configure(config)
        except CoreError as error:
            self._leave_out(key, error)

    # control calls -----------------------------------------------------------------

    def plan(self, name: str, operation: str, change: Callable[[str, State], Settings]) -> Plan:
        """Return the plan of a change.

        change   (key, state) → the settings after it; raises CoreError for a wrong one
        Raises CoreError for a model that does not serve, and for settings that do not fit it.
        """
        version = self._manager.resolve(name)
        key, before = version.key, self.state(version.key)
        settings = self.read(key, change(key, before))
        self._check(key, settings)
        config = self._configured(version.plain, settings)
        changes = difference(live_part(self._now(version)), live_part(config))
        changing = settings != before.settings
        state = before.after(settings, operation, caller(), changes) if changing else before
        return Plan(key, state, changing, as_text(changes), version.source)

    def read(self, key: str, settings: Any) -> dict[str, Any]:
        """Return settings of a model in their normal form. Raises CoreError(INVALID) for a wrong one."""
        return Reader(f"settings of model '{key}'").read(settings)

    def _check(self, key: str, settings: Settings) -> None:
        """Raise CoreError(INVALID) for settings that the options of the server leave without effect."""
        if settings.get(LIMITER) and not self._limited:
            raise invalid(
                f"settings of model '{key}': {LIMITER} has no effect: start the server with "
                "--rate-limit=execution_count"
            )
        if settings.get("response_cache", {}).get("enable") and not self._cached:
            raise invalid(
                f"settings of model '{key}': response_cache.enable is true, but the server has no cache: "
                "start it with --cache-config"
            )

    def put(self, key: str, state: State) -> Callable[[], None]:
        """Put a later state of a model in force. Return a function that undoes it.

        Raises CoreError(ALREADY_EXISTS) if another change came first; then nothing has changed.
        """
        before = self.state(key)
        if state.number <= before.number:
            raise already_exists(f"settings of model '{key}' have number {before.number} already")
        self._apply(key, state.settings)
        self._states[key] = state

        def undo() -> None:
            self._apply(key, before.settings)
            self._states[key] = before

        return undo

    def _apply(self, key: str, settings: Settings) -> None:
        """Configure all READY versions of a model, or none."""
        ready = [v for v in self._manager.versions() if v.key == key and v.state == "READY"]
        wanted = [(version, self._configured(version.plain, settings)) for version in ready]
        done: list[tuple[ModelVersion, ModelConfig]] = []
        try:
            for version, config in wanted:
                before = version.config
                if config != before:
                    version.configure(config)
                    done.append((version, before))
        except CoreError:
            for version, before in done:
                version.configure(before)
            raise
        self._problems.pop(key, None)

    def report(self, name: str) -> dict[str, Any]:
        """Return the settings of a model. Raises CoreError for a model that does not serve."""
        version = self._manager.resolve(name)
        state = self.state(version.key)
        found = {
            "model": version.key,
            "number": state.number,
            "settings": state.settings,
            "now": live_part(self._now(version)),
            "file": live_part(version.plain),
            "history": list(state.history),
            "lasting": self.files.writes,
        }
        if problem := self._problems.get(version.key):
            found["problem"] = problem
        return found

    def changed(self) -> Mapping[str, int]:
        """Return key → number of each model with settings."""
        return {key: each.number for key, each in sorted(self._states.items()) if each.settings}

    def state(self, key: str) -> State:
        """Return the state of a model, by its key."""
        return self._states.get(key, _UNCHANGED)

    def _now(self, version: ModelVersion) -> ModelConfig:
        """Return the configuration by which a version serves, or would serve if it were loaded now."""
        if version.state == "READY":
            return version.config
        return self._configured(version.plain, self.state(version.key).settings)

    def _configured(self, config: ModelConfig, settings: Settings) -> ModelConfig:
        """Return a configuration with settings in it. Raises CoreError(INVALID) if it breaks a rule."""
        if not settings:
            return config
        found = configured(config, settings)
        gpus = sorted({gpu for group in config.instance_group for gpu in group.gpus})
        configuration.validate(found, plugins.formats(), gpus)
        return found
