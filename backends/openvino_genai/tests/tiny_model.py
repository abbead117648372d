"""Writes a tiny language model as GGUF file: random weights, one token for each byte.

Its texts have no sense, but a choice forces a text of one token for each character.
"""

import struct

import numpy as np

KINDS = {int: (4, "I"), float: (6, "f"), bool: (7, "?")}
F32, Q8_0 = 0, 8  # of tensors
FILE_Q8_0 = 7
BLOCK = 32  # weights with one scale
TYPE_NORMAL, TYPE_CONTROL = 1, 3  # of tokens
HIDDEN, HEADS, LAYERS, INNER, CONTEXT = 64, 1, 1, 64, 256
SPECIAL = ["<none>", "<begin>", "<end>"]


def byte_letters():
    """Return the letter that stands for each of the 256 bytes in the tokens of byte-level BPE."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printed else chr(next(others)) for byte in range(256)]


def write_tiny_model(path):
    tokens = [*SPECIAL, *byte_letters(), "Āā"]
    values = {
        "general.architecture": "llama",
        "general.file_type": FILE_Q8_0,
        "llama.block_count": LAYERS,
        "llama.context_length": CONTEXT,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [TYPE_CONTROL] * 3 + [TYPE_NORMAL] * 257,
        "tokenizer.ggml.merges": ["Ā ā"],  # of two bytes that no test has
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.chat_template": "{{ messages[0].content }}",
    }
    path.write_bytes(_file(values, _weights(len(tokens))))


def _weights(tokens):
    random = np.random.default_rng(1)
    shapes = {"token_embd": (tokens, HIDDEN), "output": (tokens, HIDDEN), "output_norm": (HIDDEN,)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.{name}": (HIDDEN, HIDDEN)
            for name in ("attn_q", "attn_k", "attn_v", "attn_output")
        }
        shapes |= {f"blk.{layer}.{name}_norm": (HIDDEN,) for name in ("attn", "ffn")}
        shapes |= {f"blk.{layer}.{name}": (INNER, HIDDEN) for name in ("ffn_gate", "ffn_up")}
        shapes[f"blk.{layer}.ffn_down"] = (HIDDEN, INNER)
    return {f"{name}.weight": _tensor(random, shape) for name, shape in shapes.items()}


def _tensor(random, shape):
    """Return type, dimensions and bytes of a tensor: Q8_0 for a matrix, F32 for a vector of ones."""
    if len(shape) == 1:
        return F32, shape, np.ones(shape, np.float32).tobytes()
    blocks = int(np.prod(shape)) // BLOCK
    found = np.empty(blocks, [("scale", np.float16), ("weights", np.int8, BLOCK)])
    found["scale"] = 0.2 / 127
    found["weights"] = random.integers(-127, 128, (blocks, BLOCK))
    return Q8_0, shape[::-1], found.tobytes()


def _file(values, tensors):
    entries = b"".join(_text(key) + _value(found) for key, found in values.items())
    described, data = b"", b""
    for name, (kind, shape, found) in tensors.items():
        described += _text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        described += struct.pack("<IQ", kind, len(data))
        data += found + bytes(-len(found) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)) + entries + described
    return head + bytes(-len(head) % 32) + data


def _text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _value(found):
    if isinstance(found, str):
        return struct.pack("<I", 8) + _text(found)
    if isinstance(found, list):
        if isinstance(found[0], str):
            return struct.pack("<IIQ", 9, 8, len(found)) + b"".join(map(_text, found))
        return struct.pack(f"<IIQ{len(found)}i", 9, 5, len(found), *found)
    kind, form = KINDS[type(found)]
    return struct.pack(f"<I{form}", kind, found)
