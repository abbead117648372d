"""A FastAPI frontend for chat completions over the engine `letters`, as one writes it by hand.

Run it with: uvicorn benchmarks.servers.apps.events:app
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from backend_testing.letters import Letters
from core_generate import Event, Prompt, Sampling
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel


class ChatRequest(BaseModel):
    model: str
    messages: list[dict[str, Any]]
    max_tokens: int = 16
    stream: bool = False


class Delta(BaseModel):
    role: str | None = None
    content: str | None = None


class StreamChoice(BaseModel):
    index: int
    delta: Delta
    logprobs: dict[str, Any] | None = None
    finish_reason: str | None = None


class ChatChunk(BaseModel):
    id: str
    object: str = "chat.completion.chunk"
    created: int
    model: str
    choices: list[StreamChoice]


app = FastAPI()
engine = Letters(context=1_000_000, most=4000)


@app.post("/v1/chat/completions")
async def chat(asked: ChatRequest) -> StreamingResponse:
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[Any] = asyncio.Queue()

    def emit(event: Any) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)

    engine.generate(Prompt(text="hi"), Sampling(max_tokens=asked.max_tokens, temperature=0), emit)
    return StreamingResponse(_chunks(asked, events), media_type="text/event-stream")


async def _chunks(asked: ChatRequest, events: asyncio.Queue[Event]) -> AsyncIterator[str]:
    created, finish = int(time.time()), ""
    while not finish:
        event = await events.get()
        finish = event.finish
        choice = StreamChoice(
            index=0, delta=Delta(content=event.text), finish_reason=finish or None
        )
        chunk = ChatChunk(id="chatcmpl-1", created=created, model=asked.model, choices=[choice])
        yield f"data: {chunk.model_dump_json(exclude_unset=True)}\n\n"
    yield "data: [DONE]\n\n"
