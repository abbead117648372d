"""LiveBatching: batches and delay of one model, changed in place by the live settings of its server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core_bench.model.control import Control

from core.errors import unavailable
from core_tune.configuration.json_form import settings_of
from core_tune.server.settings_operations import SettingsOperations, settings_operations
from core_tune.settings import Settings

_NAME = "dynamic_batching"
_FIELDS = ("preferred_batch_size", "max_queue_delay_microseconds")


class LiveBatching:
    """Of a model whose configuration has `dynamic_batching`. Each method raises CoreError without an answer.

    set_before   its live settings of `dynamic_batching`
    beginning    settings of the model when this was made
    """

    def __init__(
        self,
        operations: SettingsOperations,
        config: Mapping[str, Any],
        set_before: Mapping[str, Any],
    ):
        self._operations = operations
        self.beginning = settings_of(config)
        self._changed = False
        self._before = {each: set_before.get(each) for each in _FIELDS}  # null: as the file says

    def set(self, settings: Settings) -> None:
        """Change batches and delay to those of settings. Raises Refused if the server does not.

        Those of the beginning leave no live settings behind.
        """
        if settings.batching == self.beginning.batching:
            self.restore()
            return
        self._changed = True  # before: Ctrl-C may come while the server changes them
        self._post(
            {
                "preferred_batch_size": list(settings.sizes),
                "max_queue_delay_microseconds": settings.delay_us,
            }
        )

    def restore(self) -> None:
        """Go back to the live settings of the beginning, if they were changed. Raises Refused."""
        if self._changed:
            self._post(self._before)
            self._changed = False

    def keep(self) -> None:
        """Let `restore` leave the settings as they are."""
        self._changed = False

    def _post(self, batching: Mapping[str, Any]) -> None:
        self._operations.write({_NAME: batching})


def live_batching(
    control: Control, model: str, config: Mapping[str, Any], lasting: bool = True
) -> LiveBatching | None:
    """Return the live settings of a model; None if it has none.

    They need a server with the plugin core-settings, and `dynamic_batching` in the configuration.

    lasting   whether a server may write them: False for trials, which must not outlive the server
    Raises CoreError if trials need loads, but live settings of the model take precedence over these.
    """
    if int(config.get("max_batch_size", 0)) <= 1 or config.get(_NAME) is None:
        return None
    operations = settings_operations(control, model)
    found = operations.read()
    if found is None:
        return None
    set_before = found.get("settings", {}).get(_NAME, {})
    if found.get("lasting") and not lasting:
        _check_loads_hold(model, set_before)
        return None
    return LiveBatching(operations, config, set_before)


def _check_loads_hold(model: str, batching: Mapping[str, Any]) -> None:
    """Raise CoreError(UNAVAILABLE) if live settings of a model hide the batches or the delay of a load."""
    if hiding := [each for each in _FIELDS if batching.get(each) is not None]:
        raise unavailable(
            f"model '{model}' has live settings of {_NAME} ({', '.join(hiding)}), which take precedence "
            "over the loads of a search, and the server writes live settings to files (--settings-write): "
            "write them to config.pbtxt, and reset them by POST /control/model_settings.reset"
        )
