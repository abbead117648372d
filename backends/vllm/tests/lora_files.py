"""write_adapter: a LoRA adapter of SmolLM2 that adds random numbers to the queries of all layers."""

import json

import numpy as np

SIZE, RANK, LAYERS = 576, 8, 30


def write_adapter(folder, scale):
    """Write an adapter in the form of PEFT.

    scale   of the random numbers; 0 changes nothing
    """
    from safetensors.numpy import save_file

    random = np.random.default_rng(1)
    tensors = {}
    for layer in range(LAYERS):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        tensors[f"{name}.lora_A.weight"] = random.normal(size=(RANK, SIZE)) * scale
        tensors[f"{name}.lora_B.weight"] = random.normal(size=(SIZE, RANK)) * scale
    folder.mkdir(parents=True)
    save_file(
        {name: each.astype(np.float32) for name, each in tensors.items()},
        folder / "adapter_model.safetensors",
    )
    config = {
        "peft_type": "LORA",
        "r": RANK,
        "lora_alpha": RANK,
        "target_modules": ["q_proj"],
        "bias": "none",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "smollm2",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
