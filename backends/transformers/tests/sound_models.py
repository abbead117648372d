"""Tiny models with random weights that continue texts with sound, and WAV files for them."""

import io
import wave

import numpy as np
import torch
import transformers
from core_testing.engines.hugging_face import TOKENS, tokenizer

PLACE, RATE = "<|AUDIO|>", 16_000
TEXT = f"<|im_start|>user\n{PLACE}what?<|im_end|>\n<|im_start|>assistant\n"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.content is string %}"
    "{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'audio' %}"
    "<|AUDIO|>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT_MODEL = {
    "vocab_size": TOKENS + 1,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "initializer_range": 0.4,
}


def qwen2_audio(folder):
    """Write a Qwen2-Audio, which reads 30 seconds of each sound."""
    encoder = transformers.Qwen2AudioEncoderConfig(
        num_mel_bins=16, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=48, d_model=32,
        initializer_range=0.3,
    )  # fmt: skip
    config = transformers.Qwen2AudioConfig(
        audio_config=encoder,
        text_config=transformers.Qwen2Config(**TEXT_MODEL),
        audio_token_index=_processor(folder, transformers.Qwen2AudioProcessor),
    )
    _write(folder, transformers.Qwen2AudioForConditionalGeneration(config))


def audio_flamingo(folder):
    """Write an Audio Flamingo 3, which reads one sound in windows of 30 seconds."""
    encoder = transformers.AudioFlamingo3EncoderConfig(
        num_mel_bins=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48,
        hidden_size=32, initializer_range=0.3,
    )  # fmt: skip
    config = transformers.AudioFlamingo3Config(
        audio_config=encoder,
        text_config=transformers.Qwen2Config(**TEXT_MODEL),
        audio_token_id=_processor(folder, transformers.AudioFlamingo3Processor, audio_token=PLACE),
    )
    _write(folder, transformers.AudioFlamingo3ForConditionalGeneration(config))


def glm_asr(folder):
    """Write a GLM-ASR, which reads one sound in windows of 30 seconds."""
    encoder = transformers.GlmAsrEncoderConfig(
        num_mel_bins=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=128,
        hidden_size=32, initializer_range=0.3,
    )  # fmt: skip
    text = transformers.LlamaConfig(**TEXT_MODEL, eos_token_id=2)
    config = transformers.GlmAsrConfig(
        audio_config=encoder,
        text_config=text,
        tie_word_embeddings=False,
        audio_token_id=_processor(folder, transformers.GlmAsrProcessor, audio_token=PLACE),
    )
    _write(folder, transformers.GlmAsrForConditionalGeneration(config))


def _write(folder, model):
    with torch.no_grad():
        model.lm_head.weight[:5] *= 0.1  # no text ends soon
    model.generation_config = transformers.GenerationConfig(eos_token_id=2, pad_token_id=0)
    model.save_pretrained(folder)


def _processor(folder, kind, **more):
    """Write a processor and its tokenizer. Return the token that stands for a sound."""
    tokenizer(folder)
    words = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    words.add_tokens([PLACE], special_tokens=True)
    features = transformers.WhisperFeatureExtractor(feature_size=16)
    processor = kind(features, words, chat_template=TEMPLATE, **more)
    processor.save_pretrained(folder)
    return words.convert_tokens_to_ids(PLACE)


def tone(seconds, pitch=440.0):
    """Return FP32[samples] at RATE: a tone that becomes louder."""
    times = np.arange(int(seconds * RATE)) / RATE
    return (np.sin(2 * np.pi * pitch * times) * times / max(seconds, 0.1)).astype(np.float32)


def wav(samples):
    """Return a WAV file with 16 bits for each sample."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(RATE)
        written.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


def silence(seconds):
    """Return a WAV file of few bytes: 4,000 samples a second with 8 bits."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(1)
        written.setframerate(4_000)
        written.writeframes(b"\x80" * (seconds * 4_000))
    return file.getvalue()


def heard(file):
    """Return the samples of a file of `wav`, FP32[samples]."""
    with wave.open(io.BytesIO(file)) as read:
        frames = read.readframes(read.getnframes())
    return np.frombuffer(frames, "<i2").astype(np.float32) / 32768
