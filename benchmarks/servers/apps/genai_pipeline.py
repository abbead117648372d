"""A bare ContinuousBatchingPipeline of OpenVINO GenAI on one thread, without a server around its steps.

Run it with: python -m benchmarks.servers.apps.genai_pipeline MODEL PORT STREAMS

POST {"prompts": […], "tokens": 64, "cpu": false} generates a text for each prompt, all at once, and answers
when all have ended: {"first_s": […], "seconds": 1.5}, the times since the request was read; with `cpu`, the
times that this process has computed. Nothing is sent meanwhile: OpenVINO GenAI's own TextStreamer makes text
of the tokens of each step, and that is all.
"""

from __future__ import annotations

import http.server
import json
import sys
import time
from typing import Any

import openvino_genai as genai

CACHE_GB = 1


class Pipeline:
    """The pipeline, and a number for each generation."""

    def __init__(self, path: str, streams: int):
        scheduler = genai.SchedulerConfig()
        scheduler.max_num_seqs, scheduler.cache_size = max(streams, 1), CACHE_GB
        properties = {"INFERENCE_NUM_THREADS": 1, "sampler_num_threads": 1}
        self._pipeline = genai.ContinuousBatchingPipeline(path, scheduler, "CPU", properties)
        self._number = 0

    def generate(self, prompts: list[str], tokens: int, cpu: bool) -> dict[str, Any]:
        """Generate all texts, and return the seconds to each first token and to the end."""
        config = genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = tokens, True, False
        clock = time.process_time if cpu else time.perf_counter
        begin = clock()
        streams = [self._added(prompt, config) for prompt in prompts]
        first_s = [0.0] * len(streams)
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
            for number, (handle, text) in enumerate(streams):
                while handle.can_read():
                    for output in handle.read().values():
                        text.write(output.generated_ids)
                        first_s[number] = first_s[number] or clock() - begin
        for _, text in streams:
            text.end()
        return {"first_s": first_s, "seconds": clock() - begin}

    def _added(self, prompt: str, config: Any) -> tuple[Any, Any]:
        self._number += 1
        handle = self._pipeline.add_request(self._number, prompt, config)
        text = genai.TextStreamer(self._pipeline.get_tokenizer(), _go_on)
        return handle, text


def _go_on(text: str) -> Any:
    return genai.StreamingStatus.RUNNING


class Handler(http.server.BaseHTTPRequestHandler):
    pipeline: Pipeline

    def do_GET(self) -> None:  # ready
        self._answer(b"{}")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = self.pipeline.generate(asked["prompts"], asked["tokens"], asked["cpu"])
        self._answer(json.dumps(found).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


if __name__ == "__main__":
    Handler.pipeline = Pipeline(sys.argv[1], int(sys.argv[3]))
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
