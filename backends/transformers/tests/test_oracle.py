"""Greedy texts of many generations at once are those of `generate` of transformers, one after the other."""

import shutil

import pytest
from core_generate import Prompt, Sampling
from core_testing.engines.events import Events

PROMPTS = [
    "Once upon a time",
    "The capital of France is",
    "a",
    "every evening a bell rang " * 12,
    "1, 2, 3, 4,",
    "between two rivers, and",
    "def main():\n    return",
    "there was a small town " * 5,
]


def expected(loaded, prompt, count):
    import torch

    ids = torch.tensor([loaded.vocabulary.tokenize(prompt)])
    found = loaded.module.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=count,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    return found[0, ids.shape[1] :].tolist()


def at_once(loaded, count, **settings):
    """Return the tokens of all prompts; each has another length, so they end one after the other."""
    from backend_transformers.engine import TextEngine
    from backend_transformers.settings import Settings

    engine = TextEngine(loaded, Settings(context=512, **settings))
    try:
        begun = [Events() for _ in PROMPTS]
        for i, (prompt, events) in enumerate(zip(PROMPTS, begun, strict=True)):
            sampling = Sampling(temperature=0.0, max_tokens=count + i, ignore_eos=True)
            engine.generate(Prompt(prompt), sampling, events)
        return [[token for event in each.all() for token in event.tokens] for each in begun]
    finally:
        engine.close()


@pytest.mark.parametrize("batch", [8, 512])
@pytest.mark.parametrize("slots", [3, 8])
def test_tokens_are_those_of_transformers(tiny, loaded, slots, batch):
    model = loaded(tiny)

    found = at_once(model, 20, slots=slots, batch=batch)

    assert found == [expected(model, each, 20 + i) for i, each in enumerate(PROMPTS)]


@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param(("MistralConfig", "MistralForCausalLM", {"sliding_window": 8}), id="window"),
        pytest.param(("Qwen3Config", "Qwen3ForCausalLM", {"head_dim": 16}), id="qwen3"),
        pytest.param(
            ("Gemma3TextConfig", "Gemma3ForCausalLM", {"sliding_window": 8, "head_dim": 16}),
            id="both-kinds-of-layers",
        ),
    ],
)
def test_other_architectures_batch_like_transformers(tmp_path, loaded, architecture):
    import torch
    import transformers
    from core_testing.engines.hugging_face import tokenizer

    config, model, more = architecture
    tokenizer(tmp_path)
    torch.manual_seed(7)
    shape = {
        "vocab_size": 320,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 7,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.3,
    }
    getattr(transformers, model)(getattr(transformers, config)(**shape, **more)).save_pretrained(
        tmp_path
    )
    found = loaded(tmp_path)

    assert at_once(found, 12, slots=8, batch=32) == [
        expected(found, each, 12 + i) for i, each in enumerate(PROMPTS)
    ]


def test_gpt2_with_positions_in_a_table(tmp_path, loaded):
    import torch
    from core_testing.engines.hugging_face import tokenizer
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer(tmp_path)
    torch.manual_seed(7)
    config = GPT2Config(vocab_size=320, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    found = loaded(tmp_path)

    assert at_once(found, 12, slots=8, batch=32) == [
        expected(found, each, 12 + i) for i, each in enumerate(PROMPTS)
    ]


def test_a_real_model_gives_the_tokens_of_transformers(tiny, smollm2, loaded):
    model = loaded(smollm2)

    found = at_once(model, 4, slots=8)

    assert found == [expected(model, each, 4 + i) for i, each in enumerate(PROMPTS)]
    assert "Paris" in model.vocabulary.plain(found[1])


def test_weights_in_several_files_are_one_model(tiny, tmp_path, loaded):
    whole = loaded(tiny)
    shutil.copytree(tiny, tmp_path / "parts", ignore=shutil.ignore_patterns("*.safetensors"))
    whole.module.save_pretrained(tmp_path / "parts", max_shard_size="100KB")
    assert not (tmp_path / "parts/model.safetensors").exists()

    assert at_once(loaded(tmp_path / "parts"), 4) == at_once(whole, 4)
