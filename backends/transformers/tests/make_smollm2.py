"""Write a model in a GGUF file as a folder of Hugging Face: make_smollm2.py FILE FOLDER

A process of its own, so that its memory is free again.
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, modeling_utils

# transformers refuses GGUF files without the package accelerate, which it does not use for them.
is_available = modeling_utils.is_accelerate_available
modeling_utils.is_accelerate_available = lambda: True

file, folder = map(Path, sys.argv[1:])
read = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
model = AutoModelForCausalLM.from_pretrained(**read, dtype=torch.float32)
modeling_utils.is_accelerate_available = is_available
# The weights are plain numbers already, which transformers does not know.
model.hf_quantizer = None
model.is_quantized = False
del model.config.quantization_config
model.save_pretrained(folder)
AutoTokenizer.from_pretrained(**read).save_pretrained(folder)
