"""Makes folders of Whisper for OpenVINO GenAI, of those of Hugging Face; and a tiny one with random weights.

encoder      features of 30 seconds ─► last_hidden_state
decoder      last_hidden_state, tokens since the last call ─► logits of the next token
tokenizer    of the folder

The state of this decoder is the tokens so far: each call computes all of them. That of `optimum-cli export
openvino` keeps keys and values instead, with the same inputs and outputs.
"""

import json
import string
import warnings

import numpy as np
import openvino as ov
import torch
import transformers
from core_testing.engines.hugging_face import tokenizer
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo
from openvino_tokenizers import convert_tokenizer

SPECIAL = [
    *("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|fr|>", "<|translate|>"),
    *("<|transcribe|>", "<|startofprev|>", "<|notimestamps|>"),
]
TIMES = [f"<|{step * 0.02:.2f}|>" for step in range(1501)]
TOKENS_OF_ANSWER = 24


class Encoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.encoder = model.model.encoder

    def forward(self, input_features):
        return self.encoder(input_features).last_hidden_state


class Decoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.decoder, self.output = model.model.decoder, model.proj_out

    def forward(self, tokens, encoder_hidden_states):
        places = torch.arange(tokens.shape[1])
        hidden = places[None, :] > places[:, None]  # tokens behind each one
        mask = torch.where(hidden, torch.tensor(-1e9), torch.tensor(0.0))[None, None]
        found = self.decoder(
            input_ids=tokens,
            attention_mask=mask,
            encoder_hidden_states=encoder_hidden_states,
            use_cache=False,
        )
        return self.output(found.last_hidden_state[:, -1:])


def export_whisper(folder, to):
    """Write a folder of OpenVINO GenAI into the empty folder `to`."""
    model = transformers.WhisperForConditionalGeneration.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    config = model.config
    features = torch.zeros(1, config.num_mel_bins, 2 * config.max_source_positions)
    hidden = torch.zeros(1, config.max_source_positions, config.d_model)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the trace
        encoder = ov.convert_model(Encoder(model), example_input=features)
        decoder = ov.convert_model(
            Decoder(model), example_input=(torch.tensor([[0, 1, 2]]), hidden)
        )
    given = encoder.get_parameters()[0]
    _named(given, "input_features").set_partial_shape(ov.PartialShape([-1, *features.shape[1:]]))
    encoder.outputs[0].get_tensor().set_names({"last_hidden_state"})
    encoder.validate_nodes_and_infer_types()
    models = {"encoder_model": encoder, "decoder_model": _with_state(decoder, config)}
    words = transformers.AutoTokenizer.from_pretrained(folder)
    models["tokenizer"], models["detokenizer"] = convert_tokenizer(words, with_detokenizer=True)
    for name, each in models.items():
        ov.save_model(each, to / f"openvino_{name}.xml", compress_to_fp16=False)
    for name in ("config.json", "generation_config.json", "preprocessor_config.json"):
        (to / name).write_bytes((folder / name).read_bytes())


def _with_state(decoder, config):
    """Return a decoder that takes the tokens since the last call, and keeps those before them."""
    tokens, hidden = decoder.get_parameters()
    given = _named(op.parameter([-1, -1], np.int64), "input_ids")
    beams = _named(op.parameter([-1], np.int32), "beam_idx")
    info = VariableInfo()
    info.variable_id, info.data_type = "tokens", ov.Type.i64
    info.data_shape = ov.PartialShape([-1, -1])
    variable = Variable(info)
    before = op.read_value(op.constant(np.zeros((1, 0), np.int64)), variable)
    first = op.constant(0, np.int64)
    whole = op.concat([op.gather(before, beams, first), given], 1)
    tokens.output(0).replace(whole.output(0))
    _named(hidden, "encoder_hidden_states").set_partial_shape(
        ov.PartialShape([-1, -1, config.d_model])
    )
    logits = decoder.get_results()[0].input_value(0)
    logits.get_tensor().set_names({"logits"})
    kept = op.assign(whole, variable)
    return ov.Model([op.result(logits)], [kept], [given, beams, hidden], "decoder")


def _named(parameter, name):
    parameter.set_friendly_name(name)
    parameter.output(0).get_tensor().set_names({name})
    return parameter


def write_tiny_whisper(folder):
    """Write a Whisper of one layer with random weights, as a folder of Hugging Face.

    It knows English and French, and writes TOKENS_OF_ANSWER tokens of letters; with times also those.
    """
    torch.manual_seed(5)
    tokenizer(folder)
    words = transformers.AutoTokenizer.from_pretrained(folder)
    plain = len(words)
    words.add_tokens(SPECIAL + TIMES, special_tokens=True)
    words.save_pretrained(folder)
    number = dict(zip(SPECIAL, words.convert_tokens_to_ids(SPECIAL), strict=True))
    end, start = number["<|endoftext|>"], number["<|startoftranscript|>"]
    special = {"eos_token_id": end, "pad_token_id": end, "bos_token_id": end}
    special["decoder_start_token_id"] = start
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {"layers": 1, "attention_heads": 2, "ffn_dim": 48}.items()
    }
    config = transformers.WhisperConfig(
        vocab_size=len(words), num_mel_bins=16, d_model=32, init_std=0.4, **sizes, **special
    )
    model = transformers.WhisperForConditionalGeneration(config)
    with torch.no_grad():
        model.proj_out.weight[plain:] *= 0.1  # letters are more likely than times
    letters = set(string.ascii_letters + " ")
    readable = {at for at in range(plain) if (text := words.decode([at])) and set(text) <= letters}
    model.save_pretrained(folder)
    told = {
        **special,
        "is_multilingual": True,
        "lang_to_id": {each: number[each] for each in ("<|en|>", "<|fr|>")},
        "task_to_id": {each: number[f"<|{each}|>"] for each in ("transcribe", "translate")},
        "no_timestamps_token_id": number["<|notimestamps|>"],
        "prev_sot_token_id": number["<|startofprev|>"],
        "begin_suppress_tokens": [],
        "suppress_tokens": sorted({*range(plain), *number.values()} - readable),
        "max_initial_timestamp_index": 50,
        "max_new_tokens": TOKENS_OF_ANSWER,
    }
    (folder / "generation_config.json").write_text(json.dumps(told))
    transformers.WhisperFeatureExtractor(feature_size=16).save_pretrained(folder)
