"""vLLM's own OpenAI frontend, as `vllm serve` starts it, over an engine that costs nothing.

Run it with: python -m benchmarks.servers.apps.vllm_frontend PORT

The engine takes the place of AsyncLLM: it hands each letter of the alphabet to the frontend as a finished
output, without processes, detokenization or sampling, and with one turn of the event loop between two of
them. So the frontend has less to do than in `vllm serve`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from backend_vllm.conformance import CAUSAL
from core_testing.engines.hugging_face import causal_model
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.api_server.app_state import init_app_state
from vllm.entrypoints.launchers.app import build_app
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.entrypoints.launchers.launcher import create_server_socket, serve_http
from vllm.outputs import CompletionOutput, RequestOutput
from vllm.renderers import renderer_from_config
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.input_processor import InputProcessor

LETTERS = "abcdefghijklmnopqrstuvwxyz "
TASKS = ("generate",)
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
CONTEXT = 1_000_000


class FreeEngine(AsyncLLM):  # type: ignore[misc]  # vLLM has no types
    """An AsyncLLM without processes."""

    errored = False
    is_running = True

    def __init__(self, config: Any):
        self.vllm_config = config
        self.model_config = config.model_config
        self.scheduler_config = config.scheduler_config
        self.observability_config = config.observability_config
        self.renderer = renderer_from_config(config)
        self.input_processor = InputProcessor(config, self.renderer)
        self.log_requests = False
        self.logger_manager = None

    async def generate(
        self, prompt: Any, sampling_params: Any, request_id: str, **_: Any
    ) -> AsyncGenerator[RequestOutput, None]:
        tokens = list(prompt["prompt_token_ids"])
        last = sampling_params.max_tokens - 1
        for number in range(last + 1):
            part = CompletionOutput(
                index=0,
                text=LETTERS[number % len(LETTERS)],
                token_ids=[97],
                cumulative_logprob=None,
                logprobs=None,
                finish_reason="length" if number == last else None,
            )
            yield RequestOutput(request_id, None, tokens, None, [part], number == last)
            await asyncio.sleep(0)

    def check_admission(self, n: int = 1, request_id: str | None = None) -> None:
        """Admit all requests."""

    async def check_health(self) -> None:
        """Do nothing: there is nothing to die."""

    def shutdown(self, timeout: float | None = None) -> None:
        """Do nothing: there are no processes."""


async def serve(port: int, folder: Path) -> None:
    """Serve until a signal ends the process."""
    causal_model(folder, **CAUSAL, max_position_embeddings=CONTEXT)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    parser = make_arg_parser(FlexibleArgumentParser())
    arguments = parser.parse_args(
        [
            *("--model", str(folder), "--served-model-name", "m", "--dtype", "float32"),
            *("--host", "127.0.0.1", "--port", str(port), "--disable-log-stats", "--enforce-eager"),
            *("--disable-uvicorn-access-log", "--uvicorn-log-level", "warning"),
        ]
    )
    config = AsyncEngineArgs.from_cli_args(arguments).create_engine_config()
    engine = FreeEngine(config)
    app = build_app(arguments, TASKS, config.model_config)
    await init_app_state(engine, app.state, arguments, TASKS)
    socket = create_server_socket(("127.0.0.1", port), reuse_port=False)
    ended = await serve_http(
        app,
        sock=socket,
        host=arguments.host,
        port=port,
        log_level=arguments.uvicorn_log_level,
        access_log=False,
    )
    await ended


if __name__ == "__main__":
    import uvloop  # as `vllm serve` does

    with tempfile.TemporaryDirectory() as made:
        uvloop.run(serve(int(sys.argv[1]), Path(made)))
