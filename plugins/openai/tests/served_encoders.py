"""Models of embeddings and scores for the tests with the package openai: of each engine that has the task."""

import contextlib
import json
import warnings

import pytest

import core

from .served_engines import vllm, write_config, write_model

KINDS = ("letters", "llamacpp", "openvino_genai", "transformers", "vllm")
VECTORS, SCORES = "vectors", "scores"  # names of the models
QUERY = "a small town between two rivers"
_TASKS = {VECTORS: "embed", SCORES: "rank"}
_PARAMETERS = {
    "letters": {},
    "llamacpp": {"context": "256", "threads": "1", "pooling": "mean"},
    "openvino_genai": {"threads": "1"},
    "transformers": {"threads": "1", "device": "cpu"},
    "vllm": {},
}


class Encoders:
    """A server with the models of one engine.

    names    of its models: VECTORS, and SCORES if there is a small model that ranks
    openai   client of the package
    """

    def __init__(self, kind, names, port):
        import openai

        self.kind, self.names = kind, names
        self.base = {"base_url": f"http://127.0.0.1:{port}/v1", "api_key": "none", "max_retries": 0}
        self.openai = openai.OpenAI(**self.base)


@contextlib.contextmanager
def serve(kind, models):
    """Serve the models of an engine, whose files are written into the empty folder `models`.

    Skip without the backend or what makes its models.
    """
    pytest.importorskip(f"backend_{'testing.letters' if kind == 'letters' else kind}")
    # No package has a small GGUF file of a model that ranks: there, embeddings rank.
    names = [VECTORS] if kind == "llamacpp" else [VECTORS, SCORES]
    for name in names:
        folder = models / name / "1"
        folder.mkdir(parents=True)
        _write(kind, name, folder)
        task = {"task": _TASKS[name]} if kind in ("letters", "llamacpp") else {}
        write_config(folder.parent, kind, {**_PARAMETERS[kind], **task})
    with core.Server(model_repository=[str(models)]) as server:
        server.start()
        yield Encoders(kind, names, server.serve(http_port=0)["http"])


def _write(kind, name, folder):
    """Write the files of a version: of BERT with random weights, unless the engine reads other files."""
    if kind in ("letters", "llamacpp"):
        write_model(kind, folder)
        return
    weights = folder
    changes = {}
    if kind == "vllm":
        found = vllm()
        (folder / "model.json").write_text(json.dumps(found.ARGUMENTS))
        weights, changes = folder / "weights", found.BERT
    pytest.importorskip("transformers")
    from core_testing.engines.hugging_face import encoder, ranker

    if kind == "openvino_genai":
        weights = folder / "weights"
    if name == VECTORS:
        encoder(weights, "BertModel", **changes)
    else:
        ranker(weights, QUERY, **changes)
    if kind == "openvino_genai":
        _convert(name, weights, folder)


def _convert(name, weights, folder):
    """Write what `optimum-cli export openvino` makes of a folder of BERT."""
    ov = pytest.importorskip("openvino")
    pytest.importorskip("openvino_genai")
    import transformers
    from openvino_tokenizers import convert_tokenizer

    tokenizer = transformers.AutoTokenizer.from_pretrained(weights)
    ranks = name == SCORES
    if ranks:
        model = transformers.BertForSequenceClassification.from_pretrained(weights).eval()
        example = dict(tokenizer(["a", "b"], ["c", "d"], return_tensors="pt"))
    else:
        model = transformers.BertModel.from_pretrained(weights, add_pooling_layer=False).eval()
        example = dict(tokenizer(["a", "b"], return_tensors="pt"))
        example.pop("token_type_ids")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the trace
        made = ov.convert_model(model, example_input=example)
    for each in made.inputs:
        each.get_node().set_partial_shape(ov.PartialShape([-1, -1]))
    made.outputs[0].get_tensor().set_names({"logits" if ranks else "last_hidden_state"})
    made.validate_nodes_and_infer_types()
    ov.save_model(made, folder / "openvino_model.xml", compress_to_fp16=False)
    inputs = {"number_of_inputs": 2} if ranks else {}
    pair = convert_tokenizer(tokenizer, with_detokenizer=True, **inputs)
    for each, part in zip(pair, ("tokenizer", "detokenizer"), strict=True):
        ov.save_model(each, folder / f"openvino_{part}.xml")
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (weights / file).rename(folder / file)
