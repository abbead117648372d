"""Writes small GGUF files."""

import struct

import numpy as np

KINDS = {int: (4, "I"), float: (6, "f"), bool: (7, "?")}
F32 = 0


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(found):
    if isinstance(found, str):
        return struct.pack("<I", 8) + text(found)
    if isinstance(found, list):
        if found and isinstance(found[0], str):
            return struct.pack("<IIQ", 9, 8, len(found)) + b"".join(map(text, found))
        return struct.pack(f"<IIQ{len(found)}i", 9, 5, len(found), *found)
    kind, form = KINDS[type(found)]
    return struct.pack(f"<I{form}", kind, found)


def gguf(values, tensors=None, version=3):
    """Return the bytes of a file. tensors: name → FP32 array."""
    tensors = tensors or {}
    entries = b"".join(text(key) + value(found) for key, found in values.items())
    described, data = b"", b""
    for name, array in tensors.items():
        shape = array.shape[::-1]
        described += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        described += struct.pack("<IQ", F32, len(data))
        data += array.astype(np.float32).tobytes()
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values)) + entries + described
    return head + bytes(-len(head) % 32) + data


TOKENS = ["<unk>", "<s>", "</s>", "<pre>", "<suf>", "<mid>", "é"]
LLAMA = {
    "general.architecture": "llama",
    "llama.context_length": 8192,
    "llama.block_count": 30,
    "llama.embedding_length": 576,
    "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3,
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.chat_template": "{{ messages[0].content }}",
}
