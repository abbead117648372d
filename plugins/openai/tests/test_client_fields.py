"""The table of test_clients for fields of completions and chats, with every engine and with a plain model."""

import asyncio
import base64
import json

import pytest

from . import served_engines

openai = pytest.importorskip("openai")

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def tokens_of(served, text):
    """Return the tokens of a text; [1] for a model that has none."""
    return served.ask("/tokenize", {"prompt": text})["tokens"] if served.able("counts") else [1]


def test_the_best_of_several_texts_is_returned(served):
    with served.doing("best_of", "logprobs"):
        assert isinstance(served.text(best_of=2), str)


def test_the_prompt_is_repeated_in_front_of_the_text(served):
    assert served.text("Say: ", echo=True) == "Say: " + served.text("Say: ")


def test_a_text_is_filled_in_before_a_suffix(served):
    with served.doing("suffix", "suffix"):
        assert served.text(suffix=" end")


def test_a_bias_decides_the_tokens(served):
    token = tokens_of(served, "town")[-1]
    with served.doing("logit_bias", "logit_bias"):
        text = served.text(logit_bias={str(token): 100})
        wanted = served.ask("/detokenize", {"tokens": [token] * served_engines.FEW})["prompt"]
        assert text.strip() == wanted.strip()


@pytest.mark.parametrize("field", ["frequency_penalty", "presence_penalty"])
def test_penalties(served, field):
    with served.doing(field, field):
        plain, changed = served.text("1 1 1 1 1 1"), served.text("1 1 1 1 1 1", **{field: 2})
        # The others have a text, or weights, that penalties do not change.
        if served.kind in ("llamacpp", "openvino_genai"):
            assert plain != changed


def test_a_prompt_of_tokens_is_that_of_its_text(served):
    tokens = tokens_of(served, "a small town")
    with served.doing("prompt", "tokens"):
        assert served.text(tokens) == served.text("a small town")


def test_a_suffix_behind_tokens_is_refused(served):
    with pytest.raises(openai.BadRequestError) as refused:
        served.text([1], suffix="end")

    assert refused.value.param == ("suffix" if served.able("tokens") else "prompt")


def test_any_json_object_may_be_asked_for(served):
    with served.doing("response_format", "schema"):
        fields = {**served.few(), "max_tokens": 30}
        (found,) = served.chat(response_format={"type": "json_object"}, **fields).choices
        text = found.message.content
        assert text.lstrip().startswith("{")
        assert found.finish_reason == "length" or isinstance(json.loads(text), dict)


def test_no_tool_is_called_if_none_may_be(served):
    (found,) = served.chat(tools=[TOOL], tool_choice="none").choices

    assert found.message.tool_calls is None and found.message.content is not None


def test_images_are_refused_by_models_and_templates_of_texts(served):
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    with pytest.raises(openai.BadRequestError) as refused:
        served.openai.chat.completions.create(
            model="m", messages=[{"role": "user", "content": content}]
        )

    assert refused.value.param == "messages"


def test_an_adapter_is_named_behind_its_model(served):
    def text(name):
        more = served.few()
        return served.openai.completions.create(model=name, prompt="a", **more).choices[0].text

    with pytest.raises(openai.NotFoundError):
        text("m:nobody")
    if served.able("adapter"):
        assert text("m:loud") == text("m").upper() != text("m")


async def test_the_async_client_completes_prompts_as_a_whole_and_in_events(served):
    body = {"model": "m", "prompt": "a small town", **served.few()}
    async with openai.AsyncOpenAI(base_url=f"{served.address}/v1", api_key="none") as client:

        async def streamed():
            stream = await client.completions.create(**body, stream=True)
            return "".join([each.choices[0].text async for each in stream])

        whole, first, second = await asyncio.wait_for(
            asyncio.gather(client.completions.create(**body), streamed(), streamed()), 60
        )

    assert whole.choices[0].text == first == second
