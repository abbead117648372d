"""Embeddings, scores and classes: the numbers of transformers for each text alone, and refusals."""

import json
import threading

import numpy as np
import pytest
from backend_transformers.folder import Folder
from backend_transformers.loading import load
from backend_transformers.model import backend
from backend_transformers.scoring import ScoringEngine
from backend_transformers.settings import settings_of
from backend_transformers.vocabulary import Vocabulary
from core_generate import Prompt
from core_testing.engines.hugging_face import encoder
from core_testing.example import MODEL
from core_testing.plugin import ModelRepository
from core_testing.served import Served, request_of

from core.config import ModelConfig
from core.errors import CoreError

TEXTS = [
    "a small town",
    "every evening a bell rang " * 9,
    "rivers",
    "Once upon a time there was a bell",
]


@pytest.fixture
def scoring():
    """Return a function that makes an engine of a folder, with parameters."""
    engines = []

    def scoring(folder, **parameters):
        config = ModelConfig(name="m")
        for name, value in {"device": "cpu", **parameters}.items():
            config.parameters[name].string_value = value
        read = Folder(folder, "m")
        settings = settings_of(config, read)
        engines.append(ScoringEngine(load(read, settings), settings))
        return engines[-1]

    yield scoring
    for each in engines:
        each.close()


def sentence_transformer(folder, normalize=True, **pooling):
    """Write the files of sentence-transformers."""
    path = "sentence_transformers.models"
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{path}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{path}.Pooling"},
    ]
    if normalize:
        modules.append({"idx": 2, "name": "2", "path": "2_Normalize", "type": f"{path}.Normalize"})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    flags = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False, **pooling}
    (folder / "1_Pooling/config.json").write_text(json.dumps(flags))


def hidden(folder, text):
    """Return what transformers computes for a text alone, FP32[tokens, numbers]."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(folder)
    given = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        return model(**given).last_hidden_state[0].numpy()


@pytest.mark.parametrize(
    ("flag", "reduce"),
    [
        ({"pooling_mode_mean_tokens": True}, lambda rows: rows.mean(0)),
        ({"pooling_mode_cls_token": True}, lambda rows: rows[0]),
        ({"pooling_mode_lasttoken": True}, lambda rows: rows[-1]),
        ({"pooling_mode_max_tokens": True}, lambda rows: rows.max(0)),
        ({"pooling_mode": "cls"}, lambda rows: rows[0]),
    ],
)
@pytest.mark.parametrize("normalize", [True, False])
def test_embeddings_are_pooled_as_the_folder_says(tmp_path, scoring, flag, reduce, normalize):
    encoder(tmp_path, "BertModel")
    sentence_transformer(tmp_path, normalize, **flag)

    found, counts = scoring(tmp_path).embed([Prompt(each) for each in TEXTS])

    for text, row, count in zip(TEXTS, found, counts, strict=True):
        rows = hidden(tmp_path, text)
        expected = reduce(rows)
        expected = expected / np.linalg.norm(expected) if normalize else expected
        np.testing.assert_allclose(row, expected, atol=1e-5)
        assert count == len(rows)


def test_parameters_change_the_pooling(tmp_path, scoring):
    encoder(tmp_path, "BertModel")

    found, _ = scoring(tmp_path, pooling="cls", normalize="true").embed([Prompt("a")])
    plain, _ = scoring(tmp_path).embed([Prompt("a")])

    first = hidden(tmp_path, "a")[0]
    np.testing.assert_allclose(found[0], first / np.linalg.norm(first), atol=1e-5)
    np.testing.assert_allclose(plain[0], hidden(tmp_path, "a").mean(0), atol=1e-5)


def test_a_model_that_generates_makes_embeddings_too(tiny, scoring):
    found, _ = scoring(tiny, task="embed", pooling="last").embed([Prompt(each) for each in TEXTS])

    np.testing.assert_allclose(found, [hidden(tiny, each)[-1] for each in TEXTS], atol=1e-4)


@pytest.mark.parametrize("typed", [True, False])
def test_scores_are_the_logits_of_transformers(tmp_path, scoring, typed):
    import torch
    from transformers import AutoTokenizer

    model = encoder(tmp_path, "BertForSequenceClassification", num_labels=1)
    if not typed:  # as of models like RoBERTa
        config = json.loads((tmp_path / "tokenizer_config.json").read_text())
        config["model_input_names"] = ["input_ids", "attention_mask"]
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    words = AutoTokenizer.from_pretrained(tmp_path)

    found, count = scoring(tmp_path).rank("rivers", TEXTS)

    total = 0
    assert ("token_type_ids" in words("a", "b")) is typed
    for text, score in zip(TEXTS, found, strict=True):
        given = words("rivers", text, return_tensors="pt")
        with torch.no_grad():
            assert score == pytest.approx(model(**given).logits.item(), abs=1e-5)
        total += given["input_ids"].shape[1]
    assert count == total


@pytest.mark.parametrize("problem", ["single_label_classification", "multi_label_classification"])
def test_classes_are_those_of_transformers(tmp_path, problem):
    import torch
    from transformers import AutoTokenizer

    labels = {0: "sad", 1: "glad", 2: "über"}
    folder = tmp_path / "made"
    folder.mkdir()
    model = encoder(folder, "BertForSequenceClassification", id2label=labels, problem_type=problem)
    words = AutoTokenizer.from_pretrained(folder)
    files = {each.name: each.read_bytes() for each in folder.iterdir()}
    repository = ModelRepository(tmp_path / "models")
    repository.add(MODEL, 'backend: "transformers"', files)
    repository.name_backend()

    with Served(backend, repository.path) as served:
        served.load()
        found = served.ask({"text_input": np.array([each.encode() for each in TEXTS], object)})

    for i, text in enumerate(TEXTS):
        with torch.no_grad():
            logits = model(**words(text, return_tensors="pt")).logits[0]
        expected = logits.softmax(-1) if problem.startswith("single") else logits.sigmoid()
        np.testing.assert_allclose(found["scores"][i], expected, atol=1e-5)
        assert found["score"][i] == found["scores"][i].max()
        assert found["label"][i].decode() == labels[int(expected.argmax())]
        likely = [labels[int(each)] for each in expected.argsort(descending=True)]
        assert [each.decode() for each in found["top_labels"][i]] == likely
        np.testing.assert_allclose(
            found["top_scores"][i], expected.sort().values.flip(0), atol=1e-5
        )


def test_a_model_that_classifies_has_no_other_task(tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    encoder(folder, "BertForSequenceClassification", num_labels=3)
    repository = ModelRepository(tmp_path / "models")
    # The file of the weights selects the backend, so the model needs no configuration.
    repository.add(MODEL, "", {each.name: each.read_bytes() for each in folder.iterdir()})

    with Served(backend, repository.path) as served:
        served.load()
        inputs = {"text_input": np.array([b"a"], object)}
        assert served.ask(inputs)["scores"].shape == (1, 3)
        request = request_of(inputs)
        request.parameters = {"task": "tokenize"}
        (refused,) = served.send([request])
    assert "'task' is 'tokenize'" in refused.message
    assert "has classify only" in refused.message


def test_a_text_to_classify_that_cannot_fit_is_refused_before_it_is_tokenized(
    tmp_path, monkeypatch
):
    folder = tmp_path / "made"
    folder.mkdir()
    encoder(folder, "BertForSequenceClassification", num_labels=3)
    repository = ModelRepository(tmp_path / "models")
    repository.add(MODEL, "", {each.name: each.read_bytes() for each in folder.iterdir()})
    encoded, encode = [], Vocabulary.encode
    monkeypatch.setattr(
        Vocabulary,
        "encode",
        lambda own, text, *second: encoded.append(len(text)) or encode(own, text, *second),
    )

    with Served(backend, repository.path) as served:
        served.load()
        context = int(json.loads((folder / "config.json").read_text())["max_position_embeddings"])
        message = rf"text 1 of 'text_input' has 65537 bytes, the context is {context} tokens, for"
        with pytest.raises(CoreError, match=message):
            served.ask({"text_input": np.array([b"a", b"a " * 32_768 + b"a"], object)})
        assert encoded == []
        assert served.ask({"text_input": np.array([b"a"], object)})["scores"].shape == (1, 3)


@pytest.mark.parametrize("pair", [False, True])
def test_other_threads_run_while_a_long_text_is_tokenized(tmp_path, loaded, pair):
    encoder(tmp_path, "BertModel")
    vocabulary = loaded(tmp_path, task="embed").vocabulary
    text, second = "a small town " * 30_000, "a" if pair else None
    found = []
    thread = threading.Thread(target=lambda: found.append(vocabulary.encode(text, second)))
    turns = 0

    thread.start()
    while thread.is_alive():
        thread.join(0.001)
        turns += 1

    # With the GIL held, this thread would wait for the end of the other one.
    assert turns > 10
    alone = vocabulary._tokens.encode(text, second)
    assert found == [(alone.ids, alone.type_ids)]


def test_requests_at_once_get_their_own_rows(tmp_path, scoring):
    encoder(tmp_path, "BertModel")
    engine = scoring(tmp_path, batch="16")
    expected = [engine.embed([Prompt(each)])[0][0] for each in TEXTS]
    found = [None] * 12

    def ask(place):
        texts = TEXTS[place % 4 :] + TEXTS[: place % 4]
        found[place] = engine.embed([Prompt(each) for each in texts])[0]

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    for place, rows in enumerate(found):
        turned = expected[place % 4 :] + expected[: place % 4]
        np.testing.assert_allclose(rows, turned, atol=1e-5)


def test_a_text_that_is_too_long_is_refused_with_both_numbers(tmp_path, scoring):
    encoder(tmp_path, "BertModel")
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')

    with pytest.raises(CoreError, match="text 1 has 28 tokens, and the model takes 1 to 24"):
        scoring(tmp_path).embed([Prompt("a"), Prompt("a " * 25)])


def test_pairs_are_refused_before_all_of_them_are_encoded(tmp_path, scoring, monkeypatch):
    encoder(tmp_path, "BertForSequenceClassification", num_labels=1)
    engine, encoded = scoring(tmp_path), []
    whole = engine._vocabulary.encode

    def counted(*texts):
        encoded.append(texts)
        return whole(*texts)

    monkeypatch.setattr(engine._vocabulary, "encode", counted)
    with pytest.raises(CoreError, match=r"text 0 has \d+ tokens, and the model takes 1 to"):
        engine.rank("a " * 10_000, TEXTS)
    assert len(encoded) == 1

    # A long word is one token.
    with pytest.raises(CoreError, match="the query has 67109 characters for 1000 documents"):
        engine.rank("a" * 67_109, ["b"] * 1000)
    assert len(encoded) == 1


def test_an_error_of_the_model_reaches_its_request_only(tmp_path, scoring):
    encoder(tmp_path, "BertModel")
    engine = scoring(tmp_path)
    with pytest.raises(CoreError, match="outside of the vocabulary, which has 0 to 319"):
        engine.embed([Prompt(tokens=[320])])

    engine._module.config.pad_token_id = 10**6  # no such row in the table of embeddings
    with pytest.raises(CoreError, match="transformers: IndexError"):
        engine.embed([Prompt("a"), Prompt("a a")])
    assert engine.embed([Prompt("a")])[0].shape == (1, 32)


def test_weights_of_another_task_are_refused(tmp_path, scoring):
    encoder(tmp_path, "BertModel")
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"architectures": ["BertForSequenceClassification"]}
    (tmp_path / "config.json").write_text(json.dumps(config))

    with pytest.raises(CoreError, match=r"lacks 2 weights .*classifier\.bias"):
        scoring(tmp_path)


@pytest.mark.parametrize(
    ("kind", "labels", "task"),
    [
        ("BertModel", 2, "embed"),
        ("BertForSequenceClassification", 1, "rank"),
        ("BertForSequenceClassification", 3, "classify"),
    ],
)
def test_the_class_of_the_model_decides_the_task(tmp_path, kind, labels, task):
    encoder(tmp_path, kind, num_labels=labels)

    assert settings_of(ModelConfig(name="m"), Folder(tmp_path, "m")).task == task


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("rank", "'task' is 'rank', .* with one label, the folder has BertModel"),
        ("classify", "'task' is 'classify', .* with several labels, the folder has BertModel"),
    ],
)
def test_a_task_that_the_model_cannot_do_is_refused(tmp_path, scoring, task, message):
    encoder(tmp_path, "BertModel")

    with pytest.raises(CoreError, match=message):
        scoring(tmp_path, task=task)


def test_a_module_that_is_not_known_is_refused(tmp_path, scoring):
    encoder(tmp_path, "BertModel")
    sentence_transformer(tmp_path, pooling_mode_mean_tokens=True)
    modules = json.loads((tmp_path / "modules.json").read_text())
    modules[2]["type"] = "sentence_transformers.models.Dense"
    (tmp_path / "modules.json").write_text(json.dumps(modules))

    with pytest.raises(CoreError, match=r"modules.json' has the module 'Dense'"):
        scoring(tmp_path)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({}, "has the pooling none"),
        ({"pooling_mode_weightedmean_tokens": True}, "pooling_mode_weightedmean_tokens"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "cls, mean"),
    ],
)
def test_a_pooling_that_is_not_known_is_refused(tmp_path, scoring, flags, message):
    encoder(tmp_path, "BertModel")
    sentence_transformer(tmp_path, **flags)

    with pytest.raises(CoreError, match=message):
        scoring(tmp_path)
