"""Makes a model of embeddings from a folder of a language model: without its logits and its cache."""

import numpy as np
import openvino as ov
from openvino import opset13 as op


def write_embedding_model(folder, to):
    """Write a model with the output of the last layer as `last_hidden_state`, and its tokenizer."""
    model = ov.Core().read_model(folder / "openvino_model.xml")
    _without_cache(model)
    _repeat_heads(model)
    inputs = {each.output(0).any_name: each for each in model.get_parameters()}
    mask = inputs["attention_mask"]
    one = op.constant(1, np.int64)
    places = op.subtract(op.cumsum(mask, one), one)
    inputs["position_ids"].output(0).replace(places.output(0))
    logits = model.get_results()[0].input_value(0).get_node()
    hidden = logits.input_value(0)
    hidden.get_tensor().set_names({"last_hidden_state"})
    made = ov.Model([op.result(hidden)], [inputs["input_ids"], mask], "embedding")
    ov.save_model(made, to / "openvino_model.xml", compress_to_fp16=False)
    for each in folder.glob("*tokenizer*"):
        (to / each.name).write_bytes(each.read_bytes())
    (to / "config.json").write_text(
        '{"max_position_embeddings": 128, "architectures": ["LlamaModel"]}'
    )


def _without_cache(model):
    """Let each layer read the keys and values of the text only."""
    for each in model.get_ops():
        if each.get_type_name() == "ReadValue":
            users = [user.get_node() for user in each.output(0).get_target_inputs()]
            chosen = next(user for user in users if user.get_type_name() == "Gather")
            users = [user.get_node() for user in chosen.output(0).get_target_inputs()]
            joined = next(user for user in users if user.get_type_name() == "Concat")
            joined.output(0).replace(joined.input_value(1))
            # The first layer also measures how long the cache is.
            empty = op.constant(np.zeros((1, 1, 0, 1), np.float32))
            chosen.output(0).replace(empty.output(0))
    for each in model.get_sinks():
        model.remove_sink(each)


def _repeat_heads(model):
    """Repeat keys and values for all heads of queries: their former lengths came from the cache."""
    for each in model.get_ops():
        if each.get_type_name() == "Broadcast" and len(each.output(0).partial_shape) == 5:
            times = int(str(each.output(0).partial_shape[2]))
            repeats = op.constant([1, 1, times, 1, 1], np.int64)
            each.output(0).replace(op.tile(each.input_value(0), repeats).output(0))
