"""ModelConfig: the configuration that auto_complete_config receives, changes and returns."""

from __future__ import annotations

import json
from typing import Any

Properties = dict[str, Any]

_ABOUT_INPUT = ("name", "data_type", "dims", "optional")
_ABOUT_OUTPUT = ("name", "data_type", "dims")
_OTHER_SCHEDULERS = ("sequence_batching", "ensemble_scheduling")


class ModelConfig:
    """The configuration of the model that completes itself.

    Its methods raise ValueError if a change contradicts the configuration of the user.
    """

    def __init__(self, model_config: str):
        self._config: Properties = json.loads(model_config)

    def as_dict(self) -> Properties:
        """Return the configuration in its JSON form. Do not change it."""
        return self._config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Set max_batch_size; it must not be below the configured one."""
        configured = self._config["max_batch_size"]
        if configured > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {configured}, but in auto-complete-config "
                f"function for model '{self._name}' specified max_batch_size {max_batch_size}"
            )
        self._config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Use the dynamic batcher. Raises ValueError if the configuration has another scheduler."""
        for scheduler in _OTHER_SCHEDULERS:
            if scheduler in self._config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{scheduler}', but "
                    f"auto-complete-config function for model '{self._name}' tries to set "
                    "scheduling_choice as 'dynamic_batching'"
                )
        self._config.setdefault("dynamic_batching", {})

    def add_input(self, input: Properties) -> None:
        """Add an input: {"name", "data_type", "dims"} and optionally "optional"."""
        self._add("input", input, _ABOUT_INPUT)

    def add_output(self, output: Properties) -> None:
        """Add an output: {"name", "data_type", "dims"}."""
        self._add("output", output, _ABOUT_OUTPUT)

    def set_model_transaction_policy(self, transaction_policy_dict: Properties) -> None:
        """Set {"decoupled": bool}. Raises ValueError if the configuration has the opposite."""
        if set(transaction_policy_dict) - {"decoupled"}:
            raise ValueError(
                "model transaction property in auto-complete-config function for model "
                f"'{self._name}' contains property other than 'decoupled'."
            )
        policy = self._config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        wanted = transaction_policy_dict["decoupled"]
        if policy.get("decoupled", wanted) != wanted:
            raise ValueError(
                f"trying to change decoupled property in auto-complete-config for model "
                f"'{self._name}', which is already set to '{policy['decoupled']}'."
            )
        policy["decoupled"] = wanted

    @property
    def _name(self) -> str:
        name: str = self._config["name"]
        return name

    def _add(self, kind: str, entry: Properties, allowed: tuple[str, ...]) -> None:
        self._check(kind, entry, allowed)
        for configured in self._config[kind]:
            if configured["name"] == entry["name"]:
                self._agree(kind, entry, configured)
                configured.update(entry)
                return
        self._config[kind].append(entry)

    def _check(self, kind: str, entry: Properties, allowed: tuple[str, ...]) -> None:
        function = f"in auto-complete-config function for model '{self._name}'"
        named = f"{kind} '{entry['name']}'" if "name" in entry else kind
        if set(entry) - set(allowed):
            quoted = [f"'{name}'" for name in allowed]
            raise ValueError(
                f"{named} {function} contains property other than "
                f"{', '.join(quoted[:-1])} and {quoted[-1]}."
            )
        for name in _ABOUT_OUTPUT:
            if name not in entry:
                raise ValueError(f"{named} {function} is missing '{name}' property.")

    def _agree(self, kind: str, entry: Properties, configured: Properties) -> None:
        if configured["data_type"] not in ("TYPE_INVALID", entry["data_type"]):
            raise ValueError(
                f"unable to load model '{self._name}', configuration expects datatype "
                f"{configured['data_type']} for {kind} '{entry['name']}', "
                f"model provides {entry['data_type']}"
            )
        tensor = f"model '{self._name}', tensor '{entry['name']}'"
        for name in ("dims", "optional"):
            if name not in entry or name not in configured:
                continue
            if name == "dims" and not configured["dims"]:
                continue
            if configured[name] != entry[name]:
                raise ValueError(
                    f"{tensor}: the model expects {name} {entry[name]} but the model "
                    f"configuration specifies {name} {configured[name]}"
                )
