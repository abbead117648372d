"""Everything over `letters`, an engine behind its real tensors, by the package openai."""

import asyncio
import json
import math

import pytest

openai = pytest.importorskip("openai")
pytest.importorskip("backend_testing.letters")


@pytest.fixture
def address(letters):
    return f"http://127.0.0.1:{letters[1]}/v1"


@pytest.fixture
def sdk(address):
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as found:
        yield found


def user(text):
    return [{"role": "user", "content": text}]


def text_of(parts, index=0):
    choices = [choice for part in parts for choice in part.choices if choice.index == index]
    return "".join(choice.delta.content or "" for choice in choices)


def test_a_chat_is_the_same_whole_and_in_events(sdk):
    body = {"model": "letters", "messages": user("hi"), "max_completion_tokens": 20}

    whole = sdk.chat.completions.create(**body)
    parts = list(
        sdk.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
    )

    assert len(whole.choices[0].message.content) == 20
    assert text_of(parts) == whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "length"
    assert parts[-1].usage == whole.usage and whole.usage.completion_tokens == 20
    assert whole.usage.prompt_tokens > 10


def test_a_chat_ends_with_the_text_or_the_context(sdk):
    poem = sdk.chat.completions.create(model="poem", messages=user("x"))
    full = sdk.chat.completions.create(model="letters", messages=user("x"))

    assert poem.choices[0].finish_reason == "stop"
    assert poem.choices[0].message.content == "one two STOP three"
    assert (full.choices[0].finish_reason, full.usage.total_tokens) == ("length", 1024)


def test_stop(sdk):
    for stop in ("STOP", ["nothing", " STOP"]):
        parts = list(
            sdk.chat.completions.create(model="poem", messages=user("x"), stop=stop, stream=True)
        )
        assert text_of(parts).rstrip() == "one two"
        assert parts[-1].choices[0].finish_reason == "stop"


def test_seeds_repeat_and_choices_differ(sdk):
    body = {"model": "letters", "prompt": "x", "temperature": 2, "n": 3, "max_tokens": 30}

    first = [each.text for each in sdk.completions.create(**body, seed=5).choices]
    again = [each.text for each in sdk.completions.create(**body, seed=5).choices]

    assert first == again
    assert len(set(first)) == 3


def test_logprobs_sum(sdk):
    found = sdk.chat.completions.create(
        model="letters",
        messages=user("x"),
        logprobs=True,
        top_logprobs=20,
        max_completion_tokens=5,
    )

    entries = found.choices[0].logprobs.content
    assert "".join(each.token for each in entries) == found.choices[0].message.content
    for each in entries:
        assert len(each.top_logprobs) == 20
        assert 0.99 < sum(math.exp(top.logprob) for top in each.top_logprobs) <= 1.0001


def test_best_of(sdk):
    body = {"model": "letters", "prompt": "x", "temperature": 2, "seed": 7, "max_tokens": 8}

    best = sdk.completions.create(**body, best_of=4)
    all_four = sdk.completions.create(**body, n=4, logprobs=0)

    scores = {each.text: sum(each.logprobs.token_logprobs) for each in all_four.choices}
    assert best.choices[0].text == max(scores, key=scores.get)


def test_biases_penalties_and_more_fields_reach_the_engine(sdk):
    def text(**fields):
        body = {"model": "letters", "prompt": "x", "max_tokens": 12, **fields}
        return sdk.completions.create(**body).choices[0].text

    plain = text()
    assert text(logit_bias={str(ord("q")): 100}) == "q" * 12
    assert text(temperature=1.5, extra_body={"top_k": 1}) == plain
    assert text(extra_body={"stop_token_ids": [ord(plain[3])]}).startswith(plain[:3])


def test_a_suffix_follows_no_prompt_of_tokens(sdk):
    body = {"model": "letters", "suffix": "end", "max_tokens": 1}
    assert sdk.completions.create(prompt="a", **body).choices[0].text

    with pytest.raises(openai.BadRequestError) as refused:
        sdk.completions.create(prompt=[97], **body)

    assert refused.value.param == "suffix"


def test_prompts_of_tokens_are_those_of_their_text(sdk):
    text = sdk.completions.create(model="letters", prompt="abc", max_tokens=5)
    tokens = sdk.completions.create(model="letters", prompt=list(b"abc"), max_tokens=5)

    assert tokens.choices[0].text == text.choices[0].text == "defgh"


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(sdk):
    with pytest.raises(openai.BadRequestError, match=r"\b1024\b") as refused:
        sdk.completions.create(model="letters", prompt="x" * 1100)

    assert "1101" in refused.value.message


def test_adapters(sdk):
    found = sdk.completions.create(model="letters:loud", prompt="abc", max_tokens=3)

    assert found.choices[0].text == "DEF"
    assert "letters:loud" in [each.id for each in sdk.models.list()]


@pytest.mark.parametrize("stream", [False, True])
def test_tools_are_called(sdk, stream):
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    body = {"model": "caller", "messages": user("x"), "tools": [tool]}

    if stream:
        with sdk.chat.completions.stream(**body) as events:
            choice = events.get_final_completion().choices[0]
    else:
        choice = sdk.chat.completions.create(**body).choices[0]

    (call,) = choice.message.tool_calls
    assert call.function.name == "add"
    assert json.loads(call.function.arguments) == {"a": 1, "b": [2, "ä"]}
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content.startswith("Let me see.")


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
def test_a_tool_must_be_called(sdk, choice):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    tool = {"type": "function", "function": {"name": "add", "parameters": schema}}

    found = sdk.chat.completions.create(
        model="letters", messages=user("x"), tools=[tool], tool_choice=choice
    )

    (call,) = found.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("add", {"a": 0})


def test_reasoning_is_apart(sdk):
    body = {"model": "thinker", "messages": user("x")}

    message = sdk.chat.completions.create(**body).choices[0].message
    parts = list(sdk.chat.completions.create(**body, stream=True))

    assert (message.content, message.reasoning_content) == ("yes", "hm")
    assert text_of(parts) == "yes"
    deltas = [part.choices[0].delta for part in parts]
    assert "".join(getattr(each, "reasoning_content", None) or "" for each in deltas) == "hm"


def test_structured_output(sdk):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}

    found = sdk.chat.completions.create(model="letters", messages=user("x"), response_format=wanted)
    chosen = sdk.completions.create(
        model="letters", prompt="x", extra_body={"structured_outputs": {"choice": ["yes", "no"]}}
    )

    assert json.loads(found.choices[0].message.content) == {"n": 0}
    assert chosen.choices[0].text == "yes"


def test_embeddings(sdk):
    one = sdk.embeddings.create(model="vectors", input="abc")
    floats = sdk.embeddings.create(model="vectors", input=["abc", "b"], encoding_format="float")
    tokens = sdk.embeddings.create(model="vectors", input=[[256, *b"abc"], [256, *b"b"]])

    assert one.data[0].embedding == pytest.approx(floats.data[0].embedding)
    assert sum(value * value for value in one.data[0].embedding) == pytest.approx(1)
    assert [each.index for each in floats.data] == [0, 1]
    assert [each.embedding for each in tokens.data] == [
        pytest.approx(each.embedding) for each in floats.data
    ]
    assert floats.usage == tokens.usage and floats.usage.total_tokens == 6


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": "letters"}, "model"),
        ({"input": []}, "input"),
        ({"input": [1, "a"]}, "input[0]"),
        ({"encoding_format": "text"}, "encoding_format"),
        ({"dimensions": 4}, "dimensions"),
        ({"n": 2}, "n"),
    ],
)
def test_a_wrong_field_of_embeddings_is_named(letters, connect, change, param):
    body = {"model": "vectors", "input": "x", **change}

    status, found = connect(letters[1]).ask("/v1/embeddings", body)

    assert (status, found["error"]["param"]) == (400, param)


def test_a_chat_needs_a_model_that_generates(sdk):
    with pytest.raises(openai.BadRequestError, match="embed"):
        sdk.chat.completions.create(model="vectors", messages=user("x"))


def steps(server):
    """Return the tokens that the engine of `forever` has generated."""
    (found,) = [each for each in server._inner.models.versions() if each.name == "forever"]
    return found.model.engine.steps


async def test_a_client_that_goes_stops_the_engine(letters, address):
    async with openai.AsyncOpenAI(base_url=address, api_key="none", max_retries=0) as sdk:
        stream = await sdk.chat.completions.create(model="forever", messages=user("x"), stream=True)
        await anext(aiter(stream))
        await stream.close()

    async def is_still():
        before = steps(letters[0])
        await asyncio.sleep(0.06)
        return steps(letters[0]) == before

    for _ in range(100):
        if await is_still():
            return
    raise AssertionError("the engine goes on after its client has gone")


async def test_a_slow_client_holds_up_nobody(letters, address, connect):
    slow = connect(letters[1]).begin(
        "/v1/completions",
        {"model": "forever", "prompt": "x", "stream": True, "max_tokens": 10_000_000},
    )
    slow.sock.settimeout(20)
    assert slow.getresponse().status == 200  # and reads no event
    async with openai.AsyncOpenAI(base_url=address, api_key="none", max_retries=0) as sdk:
        found = await asyncio.gather(
            *(
                sdk.completions.create(model="forever", prompt="abc", max_tokens=50)
                for _ in range(5)
            )
        )

    slow.close()
    assert {len(each.choices[0].text) for each in found} == {50}


async def test_many_streams_at_once(address):
    async with openai.AsyncOpenAI(base_url=address, api_key="none", max_retries=0) as sdk:

        async def one(number):
            stream = await sdk.completions.create(
                model="letters", prompt="abc", max_tokens=10 + number, stream=True
            )
            return "".join([part.choices[0].text async for part in stream])

        found = await asyncio.wait_for(asyncio.gather(*map(one, range(64))), 100)

    assert [len(each) for each in found] == [10 + number for number in range(64)]


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_reports_the_load_where_a_request_asks(sdk, stream):
    def report(**headers):
        raw = sdk.chat.completions.with_raw_response.create(
            model="letters", messages=user("hi"), max_tokens=3, stream=stream, extra_headers=headers
        )
        return raw.headers.get("endpoint-load-metrics")

    found = report(**{"endpoint-load-metrics-format": "json"})

    assert found.startswith("JSON {")
    assert json.loads(found[5:])["named_metrics"]["max_token_capacity"] > 0
    assert report() is None


@pytest.mark.parametrize("stream", [False, True])
def test_the_stop_string_that_ends_a_text_is_named_as_by_vllm(sdk, stream):
    chat = {"model": "poem", "messages": user("x"), "stream": stream}
    text = {"model": "poem", "prompt": "x", "max_tokens": 100, "stream": stream}

    def last(answer):
        return (list(answer)[-1] if stream else answer).choices[0]

    for stop, expected in ((["never", " STOP"], " STOP"), (["never"], None)):
        for choice in (
            last(sdk.chat.completions.create(**chat, stop=stop)),
            last(sdk.completions.create(**text, stop=stop)),
        ):
            assert choice.finish_reason == "stop"
            assert getattr(choice, "stop_reason", None) == expected


def test_a_stream_with_usage_is_written_as_quickly_as_one_without(sdk, monkeypatch):
    from frontend_openai.generation import Generation

    slowly, receive = [], Generation.receive
    monkeypatch.setattr(Generation, "receive", lambda *each: (slowly.append(1), receive(*each))[1])
    body = {"model": "letters", "messages": user("x"), "max_completion_tokens": 200}
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    first = list(sdk.chat.completions.create(**body))  # the server learns how the model reports

    slowly.clear()
    parts = list(sdk.chat.completions.create(**body))

    assert len(parts) > 50 and len(slowly) < 10
    assert parts[-1].usage == first[-1].usage and parts[-1].usage.completion_tokens == 200
