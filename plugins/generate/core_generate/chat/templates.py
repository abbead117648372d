"""Applies a chat template to a conversation: Jinja templates, as Hugging Face's transformers applies them.

A template shows what it can take: it is rendered once with a small conversation for each question, and the
answers are kept. What it cannot take is written into the text of the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from core.errors import CoreError, Kind
from core_generate.chat.fields import FieldError
from core_generate.chat.messages import Conversation
from core_generate.chat.quick import Pace, SlowTemplate, is_quick_only

if TYPE_CHECKING:
    import jinja2

MOST_SOURCE = 262_144  # characters of a template

# Templates by name, for models without one.
TEMPLATES = {
    "chatml": (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    "plain": (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    ),
}

# Names that `arguments` may not have: the server sets them.
_RESERVED = {"messages", "tools", "bos_token", "eos_token"}

_TOOLS_TEXT = """You may call functions to answer. These are the functions, as JSON:
<tools>
{tools}
</tools>
To call functions, write only their names and arguments, in this form:
<tool_call>
{{"name": "…", "arguments": {{…}}}}
</tool_call>
Write one such block for each call. Without a call, answer in plain text."""

_NEEDLE = "needle7081"
_CALL = {"id": "callid123", "type": "function", "function": {"name": _NEEDLE, "arguments": {}}}


class TemplateError(CoreError):
    """INVALID error: a chat template is wrong, refuses the messages, or exceeds a bound.

    is_bound   whether the template exceeds a bound of the sandbox
    """

    def __init__(self, message: str, is_bound: bool = False):
        super().__init__(Kind.INVALID, f"chat template: {message}")
        self.is_bound = is_bound


@dataclass(frozen=True)
class Template:
    """A compiled chat template, and what it can take.

    source     text of the template
    compiled   what jinja2 made of it
    strings    whether a message's content may be a text
    lists      whether a message's content may be a list of parts
    system     whether a message may have the role system
    tools      whether it writes definitions of tools
    calls      whether messages may have tool_calls, or the role tool
    """

    source: str
    compiled: jinja2.Template = field(repr=False)
    strings: bool = True
    lists: bool = False
    system: bool = True
    tools: bool = False
    calls: bool = False
    pace: Pace = field(default_factory=Pace, repr=False, compare=False)

    def text(self, names: Mapping[str, Any]) -> str:
        """Return the text for names. Raises TemplateError that says why there is none, and SlowTemplate."""
        from core_generate.chat.rendering import render_template

        return render_template(self.compiled, names, self.pace)


def render(
    template: str,
    conversation: Conversation,
    tools: Sequence[Mapping[str, Any]] | None,
    *,
    bos: str,
    eos: str,
    arguments: Mapping[str, Any] | None = None,
    media_marker: str = "",
) -> str:
    """Return the text that a model continues.

    template       Jinja text, or a name of TEMPLATES
    tools          definitions of tools in OpenAI's form; None for none
    bos, eos       the texts of the model's tokens that begin and end a text
    arguments      more names for the template, such as enable_thinking. add_generation_prompt is true by
                   default; continue_final_message lets the model go on with the last message
    media_marker   text that stands for each image and sound; "": the template itself writes one for them
    Raises CoreError(INVALID) for a template that is wrong, refuses the messages or exceeds a bound of the
    sandbox, for images or sound if it takes none, and for wrong `arguments`. A rendering takes about a second
    at most; the first call with a template renders up to six times. `quick_only` bounds it to about 20 ms.
    """
    given = dict(arguments or {})
    for name in _RESERVED & given.keys():
        raise FieldError(f"chat_template_kwargs.{name}", "the server sets this name")
    resume = bool(given.pop("continue_final_message", False))
    if resume and given.get("add_generation_prompt"):
        raise FieldError(
            "continue_final_message", "cannot be true together with add_generation_prompt"
        )
    given.setdefault("add_generation_prompt", not resume)
    found = read_template(template)
    messages = _fitted(found, conversation, tools, media_marker)
    text = found.text(
        {
            "documents": None,
            **given,
            "messages": messages,
            "tools": list(tools) if tools else None,
            "bos_token": bos,
            "eos_token": eos,
        },
    )
    return _cut_after_last(text, messages) if resume else text


def read_template(template: str) -> Template:
    """Return a compiled template. The last 64 templates are kept, and those with errors, too.

    template   Jinja text, or a name of TEMPLATES
    Raises TemplateError for one that is empty, too long, has wrong syntax or exceeds a bound of the sandbox.
    """
    found = _read_once(template)
    if isinstance(found, TemplateError):
        raise TemplateError(found.message.partition(": ")[2], found.is_bound)
    return found


@lru_cache(maxsize=64)
def _read_once(template: str) -> Template | TemplateError:
    """Return a compiled template, or its error, so that one which never ends takes its second only once.

    Within `quick_only`, raises SlowTemplate: it must be compiled first.
    """
    if is_quick_only():
        raise SlowTemplate
    try:
        return _read(template)
    except TemplateError as error:
        return error.with_traceback(None)


def _read(template: str) -> Template:
    from core_generate.chat.rendering import compile_template

    source = TEMPLATES.get(template, template)
    if not source.strip():
        raise TemplateError("the model has none; set the parameter chat_template of the model")
    if len(source) > MOST_SOURCE:
        raise TemplateError(f"it has {len(source):,} characters; allowed are {MOST_SOURCE:,}")
    found = Template(source, compile_template(source))
    return replace(found, **_capabilities(found))


def _capabilities(template: Template) -> dict[str, Any]:
    """Return the fields of Template that say what it can take, as keyword arguments.

    Each is found by rendering a small conversation: the text in question must appear. Raises TemplateError if
    the template exceeds a bound.
    """
    source = template.source

    def shows(messages: list[dict[str, Any]], tools: Any = None) -> bool:
        names = {"messages": messages, "tools": tools, "bos_token": "", "eos_token": ""}
        try:
            text = template.text({"documents": None, "add_generation_prompt": True, **names})
        except TemplateError as error:
            if error.is_bound:
                raise
            return False
        return _NEEDLE in text and "'type'" not in text

    user = {"role": "user", "content": "a"}
    function = {
        "name": _NEEDLE,
        "description": "a",
        "parameters": {"type": "object", "properties": {}},
    }
    parts = [{"type": "text", "text": _NEEDLE}]
    lists = shows([{"role": "user", "content": parts}])
    calling = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    answer = {"role": "tool", "tool_call_id": "callid123", "name": "f", "content": "a"}
    tools = "tools" in source and shows([user], [{"type": "function", "function": function}])
    return {
        "strings": shows([{"role": "user", "content": _NEEDLE}]) or not lists,
        "lists": lists,
        "system": shows([{"role": "system", "content": _NEEDLE}, user]),
        "tools": tools,
        "calls": "tool_calls" in source and shows([user, calling, answer]),
    }


def _fitted(
    template: Template, conversation: Conversation, tools: Any, marker: str
) -> list[dict[str, Any]]:
    """Return the messages of a conversation in the forms that the template can take.

    Calls, tools or a first system message that it cannot take become text of messages; the role developer, if
    it does not name it, becomes system. Raises FieldError for images or sound that it cannot take, and for
    the marker in a text.
    """
    messages = [dict(each) for each in conversation.messages]
    if "developer" not in template.source:
        for each in messages:
            each["role"] = "system" if each["role"] == "developer" else each["role"]
    _check_markers(conversation, marker)
    if not template.calls:
        messages = [_without_calls(each) for each in messages]
    if tools and not template.tools:
        listed = "\n".join(orjson.dumps(each).decode() for each in tools)
        messages = _with_system(messages, _TOOLS_TEXT.format(tools=listed))
    if not template.system and messages and messages[0]["role"] == "system":
        messages = _system_in_user(messages)
    write: Callable[[Any], Any] = _Contents(template, marker).written
    return [{**each, "content": write(each["content"])} for each in messages]


class _Contents:
    """Writes contents of messages in the form that a template takes; `marker`, if not "", replaces media."""

    def __init__(self, template: Template, marker: str):
        self._template = template
        self._marker = marker

    def written(self, content: Any) -> Any:
        """Return a content as one text ("" for None), or as a list of parts if the template takes no texts.

        With images or sound that no marker replaces, it is a list. Raises FieldError if it takes no lists.
        """
        if content is None:
            return ""
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if self._marker:
            parts = [self._marked(each) for each in parts]
        has_media = any(each["type"] != "text" for each in parts)
        if has_media and not self._template.lists:
            raise FieldError("messages", "this model's chat template takes no images and no sound")
        if has_media or not self._template.strings:
            return parts
        return "\n".join(each["text"] for each in parts)

    def _marked(self, part: dict[str, Any]) -> dict[str, Any]:
        return part if part["type"] == "text" else {"type": "text", "text": self._marker}


def _check_markers(conversation: Conversation, marker: str) -> None:
    """Raise FieldError for a message with the marker ("" for none) in its text: it would mean an image."""
    if not marker:
        return
    for at, message in enumerate(conversation.messages):
        content = message["content"] or ""
        parts = content if isinstance(content, list) else [{"text": content}]
        if any(marker in part.get("text", "") for part in parts):
            raise FieldError(
                f"messages[{at}].content", f"'{marker}' stands for an image; remove it"
            )


def _with_system(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Return the messages with `text` at the end of the system message, or in a new one, which is first."""
    if messages and messages[0]["role"] == "system":
        content = messages[0]["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        first = {**messages[0], "content": [*parts, {"type": "text", "text": f"\n{text}"}]}
        return [first, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _system_in_user(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages without a system message; the first one is one.

    Its content moves to the begin of the second message, if that is a user's; else it becomes a user's one.
    """
    system, *rest = messages
    if not rest or rest[0]["role"] != "user":
        return [{**system, "role": "user"}, *rest]
    both: list[dict[str, Any]] = []
    for content in (system["content"], rest[0]["content"]):
        both += content if isinstance(content, list) else [{"type": "text", "text": content}]
    return [{**rest[0], "content": both}, *rest[1:]]


def _without_calls(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message with its calls written as text in its content; without calls, the message itself.

    A message of the role tool becomes a user's, with its content in <tool_response>.
    """
    if message["role"] == "tool":
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        begin, end = ({"type": "text", "text": f"<{slash}tool_response>"} for slash in ("", "/"))
        return {"role": "user", "content": [begin, *parts, end]}
    if not (calls := message.get("tool_calls")):
        return message
    content = message["content"] or []
    parts = [*content] if isinstance(content, list) else [{"type": "text", "text": content}]
    for each in calls:
        text = orjson.dumps(each["function"]).decode()
        parts.append({"type": "text", "text": f"<tool_call>\n{text}\n</tool_call>"})
    return {"role": "assistant", "content": parts}


def _cut_after_last(text: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the rendered text up to the end of the last message's content, for the model to go on with it.

    Raises FieldError unless that message is an assistant's with a text at its end, and TemplateError if the
    template has not written this text.
    """
    content = messages[-1]["content"]
    last = content[-1].get("text", "") if isinstance(content, list) and content else content
    if messages[-1]["role"] != "assistant" or not isinstance(last, str) or not last.strip():
        raise FieldError(
            "continue_final_message", "the last message must be an assistant's, with a text"
        )
    stripped = last.strip()
    behind = text[::-1].find(stripped[::-1])  # str.rfind is quadratic, str.find is not
    if behind < 0:
        raise TemplateError("the last message is not in its text; it cannot be continued")
    at = len(text) - behind - len(stripped)
    whole = last.lstrip()
    return text[: at + len(whole if text.startswith(whole, at) else stripped)]
