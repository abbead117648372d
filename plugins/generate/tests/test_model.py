"""An engine's model in a server: its configuration, its tensors, refusals, tasks, slow clients."""

import asyncio
import base64
import contextlib
import json
import random
import struct
import threading
import time

import numpy as np
import pytest
from backend_testing.letters import letters
from core_generate import Description, Engine, EngineModel, Event, engine_backend, metrics
from core_generate.chat import templates
from core_testing.served import request_of

from core.errors import CoreError, Kind, internal

pytest_plugins = ["core_testing.plugin"]


def text(*values):
    return np.array([each.encode() for each in values], object)


def asked(prompt="abc", *flags, **sampling):
    found = {"text_input": text(prompt), "sampling_parameters": text(json.dumps(sampling))}
    return found | {each: np.array([True]) for each in flags}


def parameters(**values):
    return "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
        for name, value in values.items()
    )


@pytest.fixture
def serve(model_repository, serve_repository):
    """A function (config, backend) that adds the model m to a repository and serves it."""

    def start(config="", backend=letters):
        model_repository.add("m", config)
        return serve_repository(backend)

    return start


def text_of(answers):
    return b"".join(each["text_output"][0] for each in answers).decode()


# configuration ------------------------------------------------------------------


def test_a_configuration_gets_tensors_decoupling_and_the_parameter_engine(serve):
    config = serve(parameters(context=99, adapters="de,fr")).config("m")

    assert config.max_batch_size == 0
    assert config.model_transaction_policy.decoupled
    assert {each.name for each in config.input if each.optional} >= {"text_input", "stream"}
    assert [each.name for each in config.output][:2] == ["text_output", "finish_reason"]
    assert [(group.count, group.kind) for group in config.instance_group] == [(1, 3)]
    engine = json.loads(config.parameters["engine"].string_value)
    assert engine["task"] == "generate"
    assert engine["context"] == 99
    assert (engine["bos"], engine["eos"]) == ("<s>", "</s>")
    assert engine["adapters"] == ["de", "fr"]
    assert "temperature" in engine["supports"]
    assert "messages" in engine["template"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("max_batch_size: 8", "has max_batch_size 8; its engine batches itself"),
        ("instance_group { count: 2 }", "has 2 instances"),
        ('input { name: "x" data_type: TYPE_FP32 dims: [1] }', "has the input 'x' of config.pbtxt"),
        (parameters(task="dance"), "the task is 'dance', it must be one of"),
    ],
)
def test_a_configuration_that_fits_no_engine_is_refused(serve, config, message):
    with pytest.raises(CoreError, match=message):
        serve(config)


def test_a_model_that_is_not_decoupled_sends_one_response(serve):
    served = serve("model_transaction_policy { decoupled: false }")

    assert text_of([served.ask(asked("ab", max_tokens=2), name="m")]) == "abcd"
    with pytest.raises(CoreError, match="is not decoupled, so it has one response"):
        served.ask(asked("ab", "stream", max_tokens=2), name="m")


# requests -------------------------------------------------------------------------


def test_a_stream_has_a_response_for_each_event_and_only_the_asked_outputs(serve):
    found = serve().stream(asked("abc", "stream", "return_token_ids", max_tokens=3), "m")

    assert [text_of([each]) for each in found] == ["d", "e", "f"]
    assert [each["token_ids"].tolist() for each in found] == [[100], [101], [102]]
    assert all(list(each) == ["text_output", "token_ids"] for each in found)


def test_parameters_are_sampling_parameters_unless_the_input_is_given(serve):
    requests = [
        request_of({"text_input": text("abc")}, name="m"),
        request_of(asked("abc", max_tokens=3), name="m"),
    ]
    for each in requests:
        each.parameters.update({"max_tokens": 2, "unknown": "x"})

    few, more = serve().send(requests)

    assert text_of([few]) == "abcde"
    assert text_of([more]) == "abcdef"


@pytest.mark.parametrize("stream", [True, False])
def test_the_last_response_names_the_stop_string(serve, stream):
    flags = ("stream",) * stream + ("return_stop_reason", "return_finish_reason")

    served = serve()
    *others, last = served.stream(asked("abc", *flags, max_tokens=9, stop=["x", "fg"]), "m")
    (*_, other) = served.stream(asked("abc", *flags, max_tokens=2, stop=["x"]), "m")

    assert all(list(each) == ["text_output", "finish_reason"] for each in others)
    assert last["finish_reason"].tolist() == [b"stop"]
    assert last["stop_reason"].tolist() == [b"fg"]
    assert other["stop_reason"].tolist() == [b""]


def test_one_response_has_all_outputs(serve):
    flags = [
        *("return_finish_reason", "return_cumulative_logprob", "return_logprobs"),
        *("return_num_input_tokens", "return_num_output_tokens", "return_token_ids"),
    ]

    (found,) = serve().stream(asked("abc", *flags, max_tokens=2, logprobs=2), "m")

    assert text_of([found]) == "abcde"
    assert found["finish_reason"].tolist() == [b"length"]
    assert found["num_input_tokens"].tolist() == [4]
    assert found["num_output_tokens"].tolist() == [2]
    assert found["token_ids"].tolist() == [100, 101]
    logprobs = json.loads(found["logprobs"][0])
    assert [(each["token"], each["text"]) for each in logprobs] == [(100, "d"), (101, "e")]
    assert [each["text"] for each in logprobs[0]["top"]] == ["d", "e"]
    assert logprobs[0]["logprob"] == pytest.approx(np.log(0.5), abs=1e-3)
    assert found["cumulative_logprob"][0] == pytest.approx(2 * np.log(0.5), abs=1e-3)


def test_text_that_is_held_back_comes_with_its_tokens(serve):
    served = serve(parameters(text="aé<end>"))

    found = served.stream(asked("x", "stream", "return_num_output_tokens", stop="<end>"), "m")

    assert [text_of([each]) for each in found] == ["a", "é", ""]
    assert [int(each["num_output_tokens"][0]) for each in found] == [1, 2, 5]


def test_a_prompt_may_be_tokens(serve):
    inputs = {"prompt_token_ids": np.array([97, 98], np.int32), **asked(max_tokens=2)}
    del inputs["text_input"]

    assert text_of(serve().stream(inputs, "m")) == "abcd"


def png(width, height):
    """Return the head of a PNG file."""
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)


def seeing(seen):
    """Return a class of engines that put their images into a list."""

    class Sees(Engine):
        quick = True
        supports = frozenset({"images"})

        def generate(self, prompt, sampling, emit):
            seen.extend(prompt.images)
            emit(Event("x", finish="stop", count=1))
            return Ended()

    return Sees


@pytest.mark.parametrize("encode", [base64.b64encode, base64.encodebytes, bytes])
def test_an_image_is_base64_or_the_file(serve, encode):
    file = png(2, 3) + bytes(range(100))
    inputs = {**asked(), "image": np.array([encode(file)], object)}
    seen = []

    serve(backend=backend_of(seeing(seen))).stream(inputs, "m")

    assert seen == [file]


def test_at_most_128_images_are_taken(serve):
    seen = []
    served = serve(backend=backend_of(seeing(seen)))

    with pytest.raises(CoreError, match="image: 129 files, at most 128 are allowed"):
        served.stream({**asked(), "image": np.array([png(1, 1)] * 129, object)}, "m")
    served.stream({**asked(), "image": np.array([png(1, 1)] * 128, object)}, "m")

    assert len(seen) == 128


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"no picture", "image: expected an image: PNG, JPEG"),
        (png(30_000, 30_000), "image: the image has 30000 x 30000 pixels"),
    ],
)
def test_a_wrong_image_is_refused_before_the_engine_is_called(serve, file, message):
    seen = []
    served = serve(backend=backend_of(seeing(seen)))

    with pytest.raises(CoreError, match=message) as caught:
        served.stream({**asked(), "image": np.array([file], object)}, "m")

    assert caught.value.kind is Kind.INVALID
    assert seen == []


class Ended:
    def cancel(self):
        pass


def backend_of(engine, template=""):
    class Model(EngineModel):
        @classmethod
        def describe(cls, config, path, backend):
            return Description(supports=engine.supports, template=template)

        def make_engine(self):
            return engine()

    return engine_backend(Model)


class Plain(Engine):
    def generate(self, prompt, sampling, emit):
        emit(Event("text", finish="stop", prompt_tokens=1, count=1))
        return Ended()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (asked(top_k=3), "the field 'top_k' of sampling_parameters is not supported"),
        (asked(stop_token_ids=[1]), "the field 'stop_token_ids' of sampling_parameters"),
        (
            asked(structured_outputs={"json_object": True}),
            "the field 'structured_outputs.json_object' of sampling_parameters",
        ),
        (asked(lora_name="x"), "the field 'lora_name'"),
        (asked("abc", "return_logprobs"), "the input 'return_logprobs' is not supported"),
        ({**asked(), "image": text("aaaa")}, "the input 'image' is not supported"),
        (
            {"prompt_token_ids": np.array([1], np.int32)},
            "the input 'prompt_token_ids' is not supported",
        ),
        ({"stream": np.array([True])}, "no text_input and no prompt_token_ids"),
        (
            {**asked(), "prompt_token_ids": np.array([1], np.int32)},
            "a text_input and also prompt_token_ids",
        ),
        (
            {**asked("abc", "stream"), "exclude_input_in_output": np.array([False])},
            "When streaming",
        ),
        (asked(temprature=1), "unknown field 'temprature'; did you mean 'temperature'"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_engine_is_called(serve, inputs, message):
    served = serve(backend=backend_of(Plain))

    with pytest.raises(CoreError, match=message) as caught:
        served.stream(inputs, "m")

    assert caught.value.kind is Kind.INVALID
    assert text_of(served.stream(asked("a ", max_tokens=1, top_k=0, stop="x"), "m")) == "a text"


def test_a_suffix_follows_no_prompt_of_tokens(serve):
    class Infills(Plain):
        supports = Plain.supports | {"tokens", "suffix"}

    served = serve(backend=backend_of(Infills))
    inputs = {
        "prompt_token_ids": np.array([1], np.int32),
        "sampling_parameters": text('{"suffix": "x"}'),
    }

    with pytest.raises(CoreError, match="the field 'suffix' follows a prompt of text"):
        served.stream(inputs, "m")


@pytest.mark.parametrize("template", ["{{ messages[0].content }} of a load", "{% wrong of a load"])
def test_a_load_compiles_the_chat_template_and_leaves_its_error_to_chats(serve, template):
    serve(backend=backend_of(Plain, template))
    before = templates._read_once.cache_info()

    with contextlib.suppress(templates.TemplateError):
        templates.read_template(template)

    after = templates._read_once.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)


def test_an_engine_is_called_on_a_thread_unless_it_is_quick(serve):
    names = []

    class Named(Plain):
        def generate(self, prompt, sampling, emit):
            names.append(threading.current_thread().name)
            return super().generate(prompt, sampling, emit)

    serve(backend=backend_of(Named)).stream(asked(), "m")

    assert names[0].startswith("m_")


@pytest.mark.parametrize("how", ["raise", "emit", "crash"])
def test_an_error_of_the_engine_is_that_of_the_request_only(serve, how):
    class Fails(Plain):
        def generate(self, prompt, sampling, emit):
            if prompt.text != "bad":
                return super().generate(prompt, sampling, emit)
            if how == "raise":
                raise internal("out of memory")
            if how == "crash":
                raise ValueError("out of memory")
            emit(Event("a", count=1))
            emit(internal("out of memory"))
            emit(Event("b", finish="stop"))
            return Ended()

    served = serve(backend=backend_of(Fails))

    with pytest.raises(CoreError, match="out of memory"):
        served.stream(asked("bad", "stream"), "m")
    assert text_of(served.stream(asked("a "), "m")) == "a text"


# tasks --------------------------------------------------------------------------------


def request_for(task, inputs, **more):
    request = request_of(inputs, (), "m")
    request.parameters = {"task": task, **more}
    return request


def test_tokens_of_a_text_and_back(serve):
    served = serve()

    (tokens,) = served.send([request_for("tokenize", {"text_input": text("aé")})])
    (plain,) = served.send([request_for("tokenize", {"text_input": text("a")}, special=False)])
    back = {"prompt_token_ids": tokens["token_ids"]}
    (found,) = served.send([request_for("detokenize", back)])

    assert tokens["token_ids"].tolist() == [256, 97, 195, 169]
    assert plain["token_ids"].tolist() == [97]
    assert found["text_output"].tolist() == ["aé".encode()]


def test_an_unknown_task_is_refused(serve):
    (error,) = serve().send([request_for("tokenise", {"text_input": text("a")})])

    assert "has generate, tokenize, detokenize; did you mean 'tokenize'?" in error.message


def test_a_task_that_the_engine_lacks_is_unsupported(serve):
    served = serve(backend=backend_of(Plain))

    (error,) = served.send([request_for("tokenize", {"text_input": text("a")})])

    assert (error.kind, error.message) == (Kind.UNSUPPORTED, "Plain does not tokenize")


def test_embeddings_of_several_texts(serve):
    served = serve(parameters(task="embed"))

    found = served.ask({"text_input": text("ab", "c")}, name="m")

    assert found["embedding"].shape == (2, 8)
    assert np.linalg.norm(found["embedding"], axis=1) == pytest.approx([1, 1])
    assert found["num_input_tokens"].tolist() == [3, 2]


def test_scores_of_documents(serve):
    served = serve(parameters(task="rank"))

    found = served.ask({"query": text("a b"), "documents": text("b", "x", "b a")}, name="m")

    assert found["scores"].tolist() == [0.5, 0.0, 1.0]
    with pytest.raises(CoreError, match="no input 'documents', which this task needs"):
        served.ask({"query": text("a")}, name="m")


# clients --------------------------------------------------------------------------------


class Client:
    """Listens to the reply to one request: keeps texts and error, and sets `ended`. Event loop only."""

    def __init__(self, inputs):
        self.request = request_of(inputs, (), "m")
        self.texts = []
        self.error = None
        self.ended = asyncio.Event()

    def __call__(self, item, final):
        if isinstance(item, CoreError):
            self.error = item
        elif item is not None:
            self.texts.append(text_of([{"text_output": item.output("text_output").array}]))
        if final:
            self.ended.set()


def test_what_waits_for_a_slow_client_leaves_as_one_response(serve):
    served = serve()

    async def act():
        models = served._server.models
        slow, quick = [Client(asked("abc", "stream", max_tokens=500)) for _ in range(2)]
        slow.request.pause()
        for each in (slow, quick):
            models.infer(each.request).listen(each)
        await asyncio.wait_for(quick.ended.wait(), 60)
        while engine_of().status().running:
            await asyncio.sleep(0.001)
        before = list(slow.texts)
        slow.request.resume()
        await asyncio.wait_for(slow.ended.wait(), 60)
        return before, slow.texts, quick.texts

    before, slow, quick = served._call(act())

    assert len(before) == 0
    assert len(slow) == 1
    assert "".join(slow) == "".join(quick)


def measured_of():
    (measured,) = metrics._LOADED.values()
    return measured


def engine_of():
    return measured_of().model.engine


def test_a_cancelled_request_ends_at_once_and_frees_its_place(serve):
    served = serve(parameters(most=1, delay_ms=1))

    async def act():
        models = served._server.models
        first, second = Client(asked("abc", "stream")), Client(asked("abc", max_tokens=2))
        for each in (first, second):
            models.infer(each.request).listen(each)
        while not first.texts:
            await asyncio.sleep(0.001)
        first.request.cancel()
        await asyncio.wait_for(first.ended.wait(), 60)
        await asyncio.wait_for(second.ended.wait(), 60)
        return first, second

    first, second = served._call(act())

    assert first.error.kind is Kind.CANCELLED
    assert second.texts == ["abcde"]


def test_a_request_that_is_cancelled_before_its_start_never_reaches_the_engine(serve):
    started = []

    class Starts(Plain):
        def generate(self, prompt, sampling, emit):
            started.append(prompt.text)
            return super().generate(prompt, sampling, emit)

    served = serve(backend=backend_of(Starts))

    async def act():
        client = Client(asked("first"))
        client.request.cancel()
        with pytest.raises(CoreError):
            await served._server.models.infer(client.request)

    served._call(act())
    served.stream(asked("second"), "m")

    assert started[-1] == "second"


def test_requests_wait_in_the_queue_of_the_model_by_priority(serve):
    priorities = "dynamic_batching { priority_levels: 2 default_priority_level: 2 }\n"
    served = serve(parameters(most=1, delay_ms=1) + priorities)
    order = []

    async def act():
        models = served._server.models
        clients = [Client(asked("abc", max_tokens=3)) for _ in range(4)]
        clients[3].request.priority = 1

        async def ended(number):
            await asyncio.wait_for(clients[number].ended.wait(), 60)
            order.append(number)

        for each in clients:
            models.infer(each.request).listen(each)
        await asyncio.gather(*map(ended, range(4)))

    served._call(act())

    assert order == [0, 3, 1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_streams_cancellations_and_slow_clients_in_any_order_all_end(serve, seed):
    served = serve(parameters(most=8))
    chance = random.Random(seed)
    alphabet = "abcdefghijklmnopqrstuvwxyz "

    async def client():
        tokens = chance.randrange(1, 200)
        one = Client(asked("z ", *chance.choice(((), ("stream",))), max_tokens=tokens))
        served._server.models.infer(one.request).listen(one)
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(chance.random() / 100)
            chance.choice((one.request.pause, one.request.resume))()
        if cancels := chance.random() < 0.3:
            one.request.cancel()
        one.request.resume()
        await asyncio.wait_for(one.ended.wait(), 60)
        text = "".join(one.texts).removeprefix("z ")
        if not cancels or one.error is None:
            assert text == (alphabet * 8)[:tokens]
        else:
            assert one.error.kind is Kind.CANCELLED
            assert (alphabet * 8).startswith(text)

    async def act():
        await asyncio.gather(*(client() for _ in range(100)))
        await asyncio.wait_for(rest(), 60)

    async def rest():
        # The engine's thread ends a generation that was cancelled, and the loop hears of it later.
        while engine_of().status().running or measured_of().running:
            await asyncio.sleep(0.001)

    served._call(act())


# metrics --------------------------------------------------------------------------------


def test_metrics_count_tokens_and_times(serve):
    served = serve(parameters(context=64))
    served.stream(asked("abc", max_tokens=5), "m")
    served.stream(asked("ab", "stream", max_tokens=3), "m")

    def value(name, suffix=""):
        families = {f.name: f for f in served._on_loop(served._server.control.health.metrics_here)}
        (sample,) = (
            each
            for each in families[f"core_generation_{name}"].samples
            if each.suffix == suffix and each.labels["model"] == "m"
        )
        return sample.value

    # A generation is counted when it has left its slot: after its last response.
    end = time.monotonic() + 10
    while value("prompt_tokens") < 7 and time.monotonic() < end:
        time.sleep(0.01)
    assert (value("prompt_tokens"), value("tokens"), value("cached_tokens")) == (7, 8, 0)
    assert value("time_to_first_token_seconds", "_count") == 2
    assert value("time_per_token_seconds", "_count") == 2
    assert (value("running"), value("waiting"), value("cache_use")) == (0, 0, 0)
    served.unload("m")
    names = {f.name for f in served._on_loop(served._server.control.health.metrics_here)}
    assert "core_generation_tokens" not in names
