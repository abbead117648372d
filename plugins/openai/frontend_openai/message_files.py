"""The messages of a conversation with the files of images and sound in their parts, or without any files."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from core_generate.chat import Conversation

_IMAGES = {
    b"\x89PNG": "png",
    b"\xff\xd8\xff": "jpeg",
    b"GIF8": "gif",
    b"RIFF": "webp",
    b"BM": "bmp",
}


def messages_with_files(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the messages in OpenAI's form: each image and sound is a part with its file in base64."""
    images, audio = iter(conversation.images), iter(conversation.audio)
    found = []
    for message in conversation.messages:
        if isinstance(content := message["content"], list):
            message = {**message, "content": [_part(each, images, audio) for each in content]}
        found.append(message)
    return found


def texts_of(conversation: Conversation) -> Conversation:
    """Return a conversation of texts alone: those of a message are lines, and files are left out."""
    found = []
    for message in conversation.messages:
        if isinstance(content := message["content"], list):
            lines = [each["text"] for each in content if each["type"] == "text"]
            message = {**message, "content": "\n".join(lines)}
        found.append(message)
    return Conversation(found)


def _part(part: dict[str, Any], images: Iterator[bytes], audio: Iterator[bytes]) -> dict[str, Any]:
    if part["type"] == "image":
        data = next(images)
        kind = next(kind for begin, kind in _IMAGES.items() if data.startswith(begin))
        url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}
    if part["type"] == "audio":
        data = next(audio)
        form = "wav" if data.startswith(b"RIFF") else "mp3"
        sound = {"data": base64.b64encode(data).decode(), "format": form}
        return {"type": "input_audio", "input_audio": sound}
    return part
