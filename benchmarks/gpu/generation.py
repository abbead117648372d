"""Text that a model of transformers generates on the GPU, over OpenAI's routes and by transformers alone."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

STREAMS = (1, 8, 32)
TOKENS = 64
ROUNDS = 2  # 32 streams may take long
# A Llama of 400 million parameters.
SIZES = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
}
PROMPT = "Once upon a time, in a small town between two rivers, there was a clock that "
CONFIG = """backend: "transformers"
parameters { key: "context" value { string_value: "512" } }
parameters { key: "slots" value { string_value: "32" } }
parameters { key: "device" value { string_value: "cuda" } }
"""


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each number of streams: tokens per second, and the time to the first token."""
    import torch
    import transformers

    import core

    library: Any = transformers  # its decorators have no types

    version = folder / "models" / "writer" / "1"
    write(version)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    model = (
        library.AutoModelForCausalLM.from_pretrained(version, dtype=torch.bfloat16).cuda().eval()
    )
    tokens = library.AutoTokenizer.from_pretrained(version)(
        PROMPT, return_tensors="pt"
    ).input_ids.cuda()

    def bare(streams: int) -> float:
        """Return tokens per second of one static batch."""
        given = tokens.expand(streams, -1)
        begin = time.perf_counter()
        with torch.inference_mode():
            model.generate(
                given,
                attention_mask=torch.ones_like(given),
                max_new_tokens=TOKENS,
                min_new_tokens=TOKENS,
                do_sample=False,
                pad_token_id=0,
            )
        torch.cuda.synchronize()
        return streams * TOKENS / (time.perf_counter() - begin)

    with core.Server(model_repository=str(folder / "models")) as server:
        port = server.serve(http_port=0)["http"]
        for streams in STREAMS:
            bare(streams)
            _served(port, streams)
            turns = [(bare(streams), *_served(port, streams)) for _ in range(ROUNDS)]
            yield {
                "streams": streams,
                "bare_per_s": median(each[0] for each in turns),
                "served_per_s": median(each[1] for each in turns),
                "ratio": median(each[1] / each[0] for each in turns),
                "first_token_ms": 1e3 * median(each[2] for each in turns),
            }


def _served(port: int, streams: int) -> tuple[float, float]:
    """Return tokens per second of streams that start together, and the median time to the first."""
    with ThreadPoolExecutor(streams) as clients:
        begin = time.perf_counter()
        found = list(clients.map(lambda _: _stream(port), range(streams)))
        seconds = time.perf_counter() - begin
    return sum(tokens for tokens, _ in found) / seconds, median(first for _, first in found)


def _stream(port: int) -> tuple[int, float]:
    """Return the tokens of one stream, as its usage reports them, and the time to the first event."""
    body = {"model": "writer", "prompt": PROMPT, "max_tokens": TOKENS, "temperature": 0}
    body |= {"stream": True, "ignore_eos": True, "stream_options": {"include_usage": True}}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    begin, first, count = time.perf_counter(), 0.0, 0
    with urllib.request.urlopen(request, timeout=120) as events:
        for line in events:
            if not line.startswith(b"data: {"):
                continue
            first = first or time.perf_counter() - begin
            if usage := json.loads(line[6:]).get("usage"):
                count = usage["completion_tokens"]
    return count, first


def write(folder: Path) -> None:
    """Write a Llama of SIZES with random weights, and a tokenizer of single bytes."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    library: Any = transformers
    folder.mkdir(parents=True)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {word: number for number, word in enumerate(["<s>", "</s>", *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = library.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<s>"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(7)
    config = library.LlamaConfig(
        vocab_size=len(words),
        **SIZES,
        bos_token_id=0,
        eos_token_id=1,
        max_position_embeddings=2048,
    )
    library.LlamaForCausalLM(config).bfloat16().save_pretrained(folder)
