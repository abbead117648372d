"""Load on OpenAI's routes: time to the first token, between tokens, tokens per second."""

import json

import pytest
from core_bench.measure.target import Target
from core_bench.plan import Level, Pace, Side, Timing

from core.errors import CoreError

pytest.importorskip("frontend_openai")
pytest.importorskip("backend_testing.letters")
import core

TIMING = Timing(settle_s=0.0, warmup_s=0.0)


@pytest.fixture(scope="module")
def chat(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    for name, parameters in (("letters", {"delay_ms": "3"}), ("vectors", {"task": "embed"})):
        (folder / name / "1").mkdir(parents=True)
        text = 'backend: "letters"\n'
        for key, value in parameters.items():
            text += f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        (folder / name / "config.pbtxt").write_text(text)
    server = core.Server(model_repository=[str(folder)]).start()
    port = server.serve(http_port=0)["http"]
    yield lambda model, **more: Side(
        model, model, f"127.0.0.1:{port}", kind="openai", different=4, **more
    )
    server.stop()


def load(side):
    with Target(side, TIMING) as target:
        target.check()
        tally, _ = target.generator(Level(Pace.CLOSED, 3)).run(0.0, 0.3, 6)
    assert not tally.errors
    assert tally.counts["completed"] >= 6
    return tally


@pytest.mark.parametrize("endpoint", ["v1/chat/completions", "v1/completions"])
def test_streams_have_times_of_tokens(chat, endpoint):
    tally = load(chat("letters", endpoint=endpoint, streaming=True, parameters={"max_tokens": 10}))

    assert tally.counts["tokens"] == 10 * tally.counts["completed"]
    assert tally.first.count == tally.per_token.count == tally.latency.count
    assert tally.per_token.quantile(0.5) >= 2.5e6
    assert tally.first.quantile(0.5) < tally.latency.quantile(0.5) / 2


def test_tokens_of_whole_answers_are_those_of_usage(chat):
    tally = load(chat("letters", parameters={"max_tokens": 5}))

    assert tally.counts["tokens"] == 5 * tally.counts["completed"]
    assert tally.first.count == 0


def test_embeddings(chat):
    tally = load(chat("vectors", endpoint="v1/embeddings"))

    assert tally.counts["tokens"] == 0


def test_bodies_of_a_file(chat, tmp_path):
    path = tmp_path / "payloads.json"
    body = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 3}
    path.write_text(json.dumps({"data": [{"payload": [body]}, body]}))

    tally = load(chat("letters", input_data=(str(path),)))

    assert tally.counts["tokens"] == 3 * tally.counts["completed"]


def test_an_unknown_model_and_an_unknown_endpoint(chat):
    with pytest.raises(CoreError, match="did you mean 'letters'"):
        Target(chat("leters"), TIMING)
    with pytest.raises(CoreError, match="expected v1/chat/completions"):
        Target(chat("letters", endpoint="v1/images"), TIMING)
