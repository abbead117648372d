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
        if found and isinstance(found[0], float):
            return struct.pack(f"<IIQ{len(found)}f", 9, 6, len(found), *found)
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


def projector(seed=0, sound=False):
    """Return a file that makes four tokens of SmolLM2 from an image: as LLaVA, with random weights."""
    size, inner, patch, side, out = 32, 64, 14, 28, 576
    random = np.random.default_rng(seed)

    def weights(name, *shape):
        return {
            f"{name}.weight": random.normal(size=shape) * 0.2,
            f"{name}.bias": random.normal(size=shape[:1]) * 0.2,
        }

    def norm(name):
        return {f"{name}.weight": np.ones(size), f"{name}.bias": np.zeros(size)}

    tensors = {
        **weights("v.patch_embd", size, 3, patch, patch),
        "v.position_embd.weight": random.normal(size=((side // patch) ** 2, size)),
        **norm("v.post_ln"),
        **norm("v.blk.0.ln1"),
        **norm("v.blk.0.ln2"),
        **weights("v.blk.0.ffn_up", inner, size),
        **weights("v.blk.0.ffn_down", size, inner),
        **weights("mm.0", out, size),
        **weights("mm.2", out, out),
    }
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        tensors |= weights(f"v.blk.0.{name}", size, size)
    values = {
        "general.architecture": "clip",
        "clip.has_audio_encoder" if sound else "clip.has_vision_encoder": True,
        "clip.projector_type": "mlp",
        "clip.use_gelu": True,
        "clip.vision.image_size": side,
        "clip.vision.patch_size": patch,
        "clip.vision.embedding_length": size,
        "clip.vision.feed_forward_length": inner,
        "clip.vision.block_count": 1,
        "clip.vision.projection_dim": out,
        "clip.vision.attention.head_count": 2,
        "clip.vision.attention.layer_norm_epsilon": 1e-5,
        "clip.vision.image_mean": [0.5, 0.5, 0.5],
        "clip.vision.image_std": [0.5, 0.5, 0.5],
    }
    return gguf(values, tensors)
