"""Images and sound of a chat: they reach a model by an input, or within its messages."""

import base64
import json
import struct

import numpy as np
import pytest

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = b"RIFF" + struct.pack("<I", 4) + b"WAVE"
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"


def base64_of(data):
    return base64.b64encode(data).decode()


TEXT = {"type": "text", "text": "what?"}
PICTURE = {
    "type": "image_url",
    "image_url": {"url": f"data:image/png;base64,{base64_of(PNG)}"},
}
SOUND = {"type": "input_audio", "input_audio": {"data": base64_of(WAV), "format": "wav"}}
SOURCE = {"type": "base64", "media_type": "image/png", "data": base64_of(PNG)}


def chat(*parts):
    return {"model": "m", "messages": [{"role": "user", "content": [TEXT, *parts]}]}


@pytest.fixture
def ask(open_server, connect):
    """Bind a model with BYTES inputs; return a function that asks it. `seen` has the inputs of each call."""

    def serving(**inputs):
        server, port = open_server()
        seen = []

        def model(text_input=None, image=None, audio=None, messages=None):
            given = {
                "text_input": text_input,
                "image": image,
                "audio": audio,
                "messages": messages,
            }
            seen.append(
                {name: value.tolist() for name, value in given.items() if value is not None}
            )
            return {"text_output": np.array([b"yes"], object)}

        server.bind(
            "m",
            model,
            inputs={name: ("BYTES", dims) for name, dims in inputs.items()},
            outputs={"text_output": ("BYTES", [1])},
        )

        def asked(body, path=CHAT):
            return connect(port).ask(path, body)

        asked.seen = seen
        return asked

    return serving


def test_an_input_for_sound_gets_the_files(ask):
    asked = ask(text_input=[1], audio=[-1])

    status, found = asked(chat(SOUND, SOUND))

    assert status == 200, found
    assert asked.seen == [{"text_input": [b"what?"], "audio": [WAV, WAV]}]


def test_an_input_for_images_gets_the_files_in_base64_as_that_of_vllm(ask):
    asked = ask(text_input=[1], image=[-1])

    assert asked(chat(PICTURE))[0] == 200
    assert asked.seen[0]["image"] == [base64.b64encode(PNG)]


@pytest.mark.parametrize(("part", "what"), [(PICTURE, "images"), (SOUND, "sound")])
def test_a_model_of_texts_alone_refuses_files(ask, part, what):
    status, found = ask(text_input=[1])(chat(part))

    assert (status, found["error"]["param"]) == (400, "messages")
    assert found["error"]["message"].endswith(f"model 'm' does not support {what}")


def test_more_files_than_the_input_takes_are_refused(ask):
    asked = ask(text_input=[1], audio=[1])

    status, found = asked(chat(SOUND, SOUND))

    assert asked(chat(SOUND))[0] == 200
    assert (status, found["error"]["param"]) == (400, "messages")
    assert "takes 1 files in its input 'audio', the messages have 2" in found["error"]["message"]


def test_a_model_that_takes_messages_gets_the_parts_of_a_chat_as_they_are(ask):
    asked = ask(messages=[1])

    status, found = asked(chat(PICTURE, SOUND))

    assert status == 200, found
    (message,) = json.loads(asked.seen[0]["messages"][0])
    assert message["content"] == [TEXT, PICTURE, SOUND]


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
def test_messages_of_other_routes_reach_it_in_the_same_form(ask, path):
    asked = ask(messages=[1])
    content = [{"type": "text", "text": "what?"}, {"type": "image", "source": SOURCE}]
    body = {"model": "m", "messages": [{"role": "user", "content": content}], "max_tokens": 9}
    if path == RESPONSES:
        content = [
            {"type": "input_text", "text": "what?"},
            {"type": "input_image", "image_url": PICTURE["image_url"]["url"]},
        ]
        body = {"model": "m", "input": [{"role": "user", "content": content}]}

    assert asked(body, path)[0] == 200
    (message,) = json.loads(asked.seen[0]["messages"][0])
    assert message["content"] == [TEXT, PICTURE]
