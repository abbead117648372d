"""The package openai as a client: sync, async, streams, errors."""

import asyncio

import pytest

openai = pytest.importorskip("openai")


def user(text):
    return [{"role": "user", "content": text}]


@pytest.fixture
def address(client):
    return f"http://127.0.0.1:{client.port}/v1"


@pytest.fixture
def sdk(address):
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as found:
        yield found


@pytest.mark.parametrize("model", ["words", "engine", "vllm"])
def test_chat(sdk, model):
    found = sdk.chat.completions.create(model=model, messages=user("a b"))
    parts = list(sdk.chat.completions.create(model=model, messages=user("a b"), stream=True))

    text = "".join(part.choices[0].delta.content or "" for part in parts)
    assert found.choices[0].message.content == text
    assert text
    assert parts[-1].choices[0].finish_reason == "stop"


def test_the_helper_for_streams_makes_the_whole_answer(sdk):
    with sdk.chat.completions.stream(
        model="engine", messages=user("x"), stream_options={"include_usage": True}
    ) as stream:
        found = stream.get_final_completion()

    assert found.choices[0].message.content == "one two three"
    assert found.usage.completion_tokens == 3


def test_a_parsed_answer(sdk):
    pydantic = pytest.importorskip("pydantic")
    shape = pydantic.create_model("Shape", a=(int, ...))

    found = sdk.chat.completions.parse(model="engine", messages=user("x"), response_format=shape)

    assert found.choices[0].message.parsed.a == 1


def test_completions(sdk):
    found = sdk.completions.create(model="engine", prompt=["x", "y"], logprobs=1, echo=False)
    parts = list(sdk.completions.create(model="engine", prompt="x", stream=True, n=2))

    assert [each.text for each in found.choices] == ["one two three"] * 2
    assert found.choices[0].logprobs.tokens == ["one ", "two ", "three"]
    assert "".join(part.choices[0].text for part in parts if part.choices[0].index == 1)


def test_more_fields_by_extra_body(sdk):
    found = sdk.chat.completions.create(
        model="engine",
        messages=user("x"),
        extra_body={"structured_outputs": {"choice": ["yes", "no"]}},
    )

    assert found.choices[0].message.content == "yes"


def test_models(sdk):
    assert "words" in [each.id for each in sdk.models.list()]
    assert sdk.models.retrieve("words").object == "model"


def test_errors_are_those_of_the_package(sdk, models):
    with pytest.raises(openai.NotFoundError) as unknown:
        sdk.chat.completions.create(model="nothing", messages=user("x"))
    with pytest.raises(openai.BadRequestError) as wrong:
        sdk.chat.completions.create(model="words", messages=user("x"), temperature=0.3)
    models.gate.clear()
    stream = sdk.chat.completions.create(model="broken", messages=user("late"), stream=True)
    models.gate.set()
    with pytest.raises(openai.APIError, match="no more text"):
        list(stream)

    assert unknown.value.code == "model_not_found"
    assert wrong.value.param == "temperature"


async def test_many_streams_at_once(address):
    async with openai.AsyncOpenAI(base_url=address, api_key="none", max_retries=0) as sdk:

        async def one(number):
            stream = await sdk.chat.completions.create(
                model="engine", messages=user("x"), seed=number, stream=True
            )
            return "".join([part.choices[0].delta.content or "" async for part in stream])

        found = await asyncio.wait_for(asyncio.gather(*map(one, range(20))), 60)

    assert found == [f"{number} two three" for number in range(20)]
