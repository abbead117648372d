"""OpenAIOptions: the flags of OpenAI's routes. Those that Triton's frontend has mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.options import Listener, Options, Section, UsageError, group
from core.options.values import BOOL, PORT, STRING, integer
from frontends.http.options import HttpOptions
from frontends.shared.forms import restricted

_openai = group("OpenAI")

CATEGORIES = ("inference", "model-repository")
"""Kinds of requests of --openai-restricted-api that these routes have."""

_ELSEWHERE = ("health", "metrics")  # of Triton's flag; here these routes are on other ports


@dataclass(kw_only=True)
class OpenAIOptions(Section):
    """The flags of OpenAI's routes."""

    # fmt: off
    allow_openai: bool = _openai(BOOL, True,
        "Serve the routes of OpenAI below /v1 on the HTTP port (docs/serve/openai.md).")
    openai_port: int = _openai(PORT, 0,
        "Port that serves the routes of OpenAI alone, in addition to the HTTP port. 0: no such port.")
    openai_default_max_tokens: int = _openai(integer(), 0,
        "Tokens to generate at most, for a request that does not say it. 0: as OpenAI, 16 for completions "
        "and no limit for chats.")
    openai_restricted_api: dict[str, tuple[str, str]] = _openai(restricted("api", "metrics"), {},
        "Kinds of requests to these routes that require the header <key> with <value>: inference, "
        "model-repository.")
    openai_lora_separator: str = _openai(STRING, ":",
        "Text between the name of a model and the name of a LoRA adapter in the field model.")
    # fmt: on

    def listeners(self, options: Options) -> Sequence[Listener]:
        """Return the port of its own, if there is one."""
        if not (self.allow_openai and self.openai_port):
            return ()
        address = HttpOptions.of(options).http_address
        return (Listener("openai", "OpenAI", address, self.openai_port),)

    def check_usage(self, options: Options) -> None:
        """Raise UsageError for a restricted API that these routes do not have."""
        for name in self.openai_restricted_api:
            if name not in (*CATEGORIES, *_ELSEWHERE):
                raise UsageError(
                    f"unknown restricted api '{name}' of --openai-restricted-api; it is none of "
                    f"{', '.join((*CATEGORIES, *_ELSEWHERE))}"
                )
