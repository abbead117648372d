"""Writes small GGUF files."""

import struct

import numpy as np

KINDS = {int: (4, "I"), float: (6, "f"), bool: (7, "?")}
F32, F16 = 0, 1


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
    """Return the bytes of a file. tensors: name → array, which becomes FP32 unless it is FP16."""
    tensors = tensors or {}
    entries = b"".join(text(key) + value(found) for key, found in values.items())
    described, data = b"", b""
    for name, array in tensors.items():
        shape = array.shape[::-1]
        described += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        half = array.dtype == np.float16
        described += struct.pack("<IQ", F16 if half else F32, len(data))
        data += array.astype(np.float16 if half else np.float32).tobytes()
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
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.chat_template": "{{ messages[0].content }}",
}


def listener(seed=0):
    """Return a file that makes 30 tokens of SmolLM2 from half a minute of sound: as Ultravox, random."""
    size, inner, bands, out, stacked = 32, 64, 80, 576, 50
    random = np.random.default_rng(seed)

    def weights(name, *shape):
        return {f"{name}.weight": random.normal(size=shape) * 0.2} | bias(name, shape[0])

    def bias(name, *shape):
        return {f"{name}.bias": random.normal(size=shape) * 0.2}

    def norm(name):
        return {f"{name}.weight": np.ones(size), f"{name}.bias": np.zeros(size)}

    def filters(name, channels):
        kernel = random.normal(size=(size, channels, 3)).astype(np.float16)
        return {f"{name}.weight": kernel} | bias(name, size, 1)

    tensors = {
        **filters("a.conv1d.1", bands),
        **filters("a.conv1d.2", size),
        "a.position_embd.weight": random.normal(size=(1500, size)) * 0.02,
        **norm("a.post_ln"),
        **norm("a.blk.0.ln1"),
        **norm("a.blk.0.ln2"),
        **weights("a.blk.0.ffn_up", inner, size),
        **weights("a.blk.0.ffn_down", size, inner),
        "mm.a.norm_pre.weight": np.ones(size * stacked),
        "mm.a.mlp.1.weight": random.normal(size=(2 * inner, size * stacked)) * 0.2,
        "mm.a.norm_mid.weight": np.ones(inner),
        "mm.a.mlp.2.weight": random.normal(size=(out, inner)) * 0.2,
    }
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        tensors |= weights(f"a.blk.0.{name}", size, size)
    del tensors["a.blk.0.attn_k.bias"]  # Whisper's keys have none
    values = {
        "general.architecture": "clip",
        "clip.has_audio_encoder": True,
        "clip.projector_type": "ultravox",
        "clip.use_gelu": True,
        "clip.audio.num_mel_bins": bands,
        "clip.audio.embedding_length": size,
        "clip.audio.feed_forward_length": inner,
        "clip.audio.block_count": 1,
        "clip.audio.projection_dim": out,
        "clip.audio.attention.head_count": 2,
        "clip.audio.attention.layer_norm_epsilon": 1e-5,
        "clip.audio.projector.stack_factor": stacked,
    }
    return gguf(values, tensors)


def projector(seed=0):
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
        "clip.has_vision_encoder": True,
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


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["a", "small", "town", "between", "two", "rivers", "and", "more"]
POOLING_MEAN, POOLING_RANK = 1, 4
TYPE_NORMAL, TYPE_CONTROL = 1, 3  # of tokens


def encoder(pooling, context=64, template="", seed=0):
    """Return a BERT of one layer with random weights, which has WORDS as its vocabulary.

    With POOLING_RANK it gives a text with more of its words a higher score: the first dimension of the
    embeddings tells words from unknown ones, and the classifier reads the mean of it.

    template   text with {query} and {document}, which it reads for a pair; "" for none
    """
    size, inner = 32, 48
    random = np.random.default_rng(seed)
    tokens = [*SPECIAL, *(f"▁{each}" for each in WORDS)]  # a word begins with ▁

    def layer(name, *shape, scale=0.2):
        return {
            f"{name}.weight": random.normal(size=shape) * scale,
            f"{name}.bias": random.normal(size=shape[:1]) * scale,
        }

    def norm(name):
        return {f"{name}.weight": np.ones(size), f"{name}.bias": np.zeros(size)}

    words = random.normal(size=(len(tokens), size)) * 0.4
    words[:, 0] = [0.0 if each.startswith("[") else 2.0 for each in tokens]
    words[SPECIAL.index("[UNK]"), 0] = -2.0
    tensors = {
        "token_embd.weight": words,
        "token_types.weight": random.normal(size=(2, size)) * 0.1,
        "position_embd.weight": random.normal(size=(context, size)) * 0.1,
        **norm("token_embd_norm"),
        **layer("blk.0.attn_q", size, size),
        **layer("blk.0.attn_k", size, size),
        **layer("blk.0.attn_v", size, size, scale=0.02),
        **layer("blk.0.attn_output", size, size, scale=0.02),
        **norm("blk.0.attn_output_norm"),
        **layer("blk.0.ffn_up", inner, size, scale=0.02),
        **layer("blk.0.ffn_down", size, inner, scale=0.02),
        **norm("blk.0.layer_output_norm"),
    }
    for name in ("attn_v", "attn_output"):
        tensors[f"blk.0.{name}.weight"] += np.eye(size)
    if pooling == POOLING_RANK:
        tensors |= layer("cls", size, size, scale=0.001) | layer("cls.output", 1, size, scale=0.001)
        tensors["cls.weight"] += np.eye(size) * 0.1  # tanh keeps such numbers apart
        tensors["cls.output.weight"][0, 0] = 100.0
    values = {
        "general.architecture": "bert",
        "bert.context_length": context,
        "bert.embedding_length": size,
        "bert.feed_forward_length": inner,
        "bert.block_count": 1,
        "bert.attention.head_count": 2,
        "bert.attention.layer_norm_epsilon": 1e-5,
        "bert.attention.causal": False,
        "bert.pooling_type": pooling,
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [TYPE_CONTROL] * len(SPECIAL) + [TYPE_NORMAL] * len(WORDS),
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.bos_token_id": SPECIAL.index("[CLS]"),
        "tokenizer.ggml.eos_token_id": SPECIAL.index("[SEP]"),
        "tokenizer.ggml.seperator_token_id": SPECIAL.index("[SEP]"),
        "tokenizer.ggml.padding_token_id": SPECIAL.index("[PAD]"),
        "tokenizer.ggml.unknown_token_id": SPECIAL.index("[UNK]"),
        "tokenizer.ggml.mask_token_id": SPECIAL.index("[MASK]"),
        **({"tokenizer.chat_template.rerank": template} if template else {}),
    }
    return gguf(values, tensors)
