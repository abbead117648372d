"""A chat template gives the text that transformers gives, and cannot harm the server."""

import subprocess
import sys
import time

import pytest
from core_generate.chat import (
    SlowTemplate,
    quick_only,
    read_messages,
    read_template,
    read_tools,
    render,
)
from core_generate.chat.templates import _without_calls

from core.errors import CoreError, Kind

USER = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
CALLING = [
    {"role": "user", "content": "1+2?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "callid123",
                "type": "function",
                "function": {"name": "add", "arguments": '{"a": 1}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "callid123", "content": "3"},
]


def rendered(template, messages=USER, tools=None, **arguments):
    marker = arguments.pop("media_marker", "")
    functions = read_tools(tools).functions if tools else None
    return render(
        template,
        read_messages(messages),
        functions,
        bos="<s>",
        eos="</s>",
        arguments=arguments,
        media_marker=marker,
    )


def test_blocks_lose_their_line_as_in_transformers():
    template = (
        "{{ bos_token }}\n  {% for m in messages %}\n"
        "[{{ m.role }}] {{ m['content'] | trim }}{{ eos_token }}\n  {%- endfor %}\n"
    )

    assert rendered(template) == "<s>\n[user] hi</s>"


def test_json_is_not_escaped_for_html():
    assert rendered("{{ messages[0] | tojson }}", [{"role": "user", "content": "<é>"}]) == (
        '{"role": "user", "content": "<é>"}'
    )
    assert rendered("{{ {'b': [1], 'a': 2} | tojson(indent=1, sort_keys=true) }}") == (
        '{\n "a": 2,\n "b": [\n  1\n ]\n}'
    )


def test_loops_may_be_left_and_marks_of_training_change_nothing():
    template = (
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}"
        "{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}"
    )
    messages = [{"role": "user", "content": each} for each in "abc"]

    assert rendered(template, messages) == "ab"


def test_loop_knows_its_length_and_last():
    template = (
        "{% for m in messages %}{{ m.content }}{{ loop.length }}"
        "{% if not loop.last %}, {% endif %}{% endfor %}"
    )

    assert rendered(template, [{"role": "user", "content": each} for each in "abc"]) == "a3, b3, c3"


def test_arguments_reach_the_template():
    template = "{% if enable_thinking is false %}no{% endif %}{{ add_generation_prompt }}"

    assert rendered(template, enable_thinking=False, add_generation_prompt=False) == "noFalse"
    assert rendered(template) == "True"


@pytest.mark.parametrize("name", ["bos_token", "eos_token"])
def test_arguments_cannot_replace_what_the_server_sets(name):
    with pytest.raises(CoreError, match=rf"chat_template_kwargs\.{name}"):
        rendered("chatml", **{name: "x"})


def test_refusal_of_a_template_is_an_error_with_its_text():
    with pytest.raises(CoreError, match="roles must alternate") as error:
        rendered("{{ raise_exception('roles must alternate') }}")

    assert error.value.kind is Kind.INVALID


@pytest.mark.parametrize(
    "template, text",
    [
        ("{% for m in messages %}", "line 1"),
        ("", "has none"),
        ("{{ x.y }}", "'x' is undefined"),
        ("{{ ''.__class__.__mro__ }}", "unsafe|undefined"),
        ("{{ messages.append(1) }}", "append"),
        ("{% include 'x' %}", "loader"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("(" * 10, None),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "compiled"),
        ("{% for a in [1] %}" * 40 + "{% endfor %}" * 40, "compiled"),
        ("x" * 300_000, "characters"),
    ],
)
def test_wrong_template_is_an_error(template, text):
    if text is None:
        assert rendered(template) == template
        return
    with pytest.raises(CoreError, match=text) as error:
        rendered(template)
    assert error.value.kind is Kind.INVALID


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(40) }}",
        "{% for a in [1] recursive %}{{ loop([1, 2]) }}{% endfor %}",
        "{{ 'a' * 10**9 }}",
        "{{ [1] * 10**9 }}",
        "{{ 10**(10**10) }}",
        "{% set n = namespace(x='aa') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% set n = namespace(x='aa') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=3) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}",
        "{% set n = namespace(x='aa') %}{% for i in range(60) %}"
        "{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}{% endfor %}",
        "{{ 'a' | center(10**9) }}",
        "{{ 'a'.ljust(10**9) }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '%999999999d' | format(1) }}",
        "{{ '%*d' % (999999999, 1) }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ '{:>{}}'.format(1, 999999) }}",
        "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
        "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}",
        "{{ ('b' * 100000).join(range(100000) | map('string')) }}",
        "{{ range(100000) | join('b' * 100000) }}",
        "{{ ('%s' * 40000) % {'a': 1} | format }}{{ ('%(a)s' * 9000) % {'a': 'x' * 100000} }}",
        "{{ ('\\n' * 100000) | indent('x' * 100000) }}",
        "{{ ('\\t' * 100000).expandtabs(100000) }}",
        "{{ 'a'.translate({97: 'x' * 100000}) }}",
        "{{ ([range(99999)] * 99999) | map('list') | list }}",
        "{{ ([[1] * 99999] * 99999) | sum(start=[]) | length }}",
        "{{ {'a': 1} | tojson(indent=999999) }}",
        "{{ strftime_now('%99999999d') }}",
    ],
)
def test_template_without_end_is_stopped(template):
    begun = time.thread_time()

    with pytest.raises(CoreError) as error:
        rendered(template)

    assert error.value.kind is Kind.INVALID
    assert time.thread_time() - begun < 3


def test_bound_of_one_rendering_is_new_for_the_next():
    template = "{% for a in range(50000) %}{% endfor %}ok"

    assert [rendered(template) for _ in range(8)] == ["ok"] * 8


LONG = (
    "{% if messages[0].content == 'long' %}{% for a in range(400) %}{% for b in range(400) %}"
    "{% endfor %}{% endfor %}{% endif %}{{ messages[0].content }}"
)


@pytest.fixture
def impatient(monkeypatch):
    """A bound that loops exceed also on a fast processor."""
    monkeypatch.setattr("core_generate.chat.rendering.QUICK_S", 0.005)


@pytest.mark.usefixtures("impatient")
def test_a_slow_rendering_is_stopped_early_where_others_wait_and_so_are_later_ones():
    slow = [{"role": "user", "content": "long"}]
    read_template(LONG)
    with quick_only():
        assert rendered(LONG) == "hi"
        begun = time.thread_time()
        with pytest.raises(SlowTemplate):
            rendered(LONG, slow)
        took = time.thread_time() - begun
        with pytest.raises(SlowTemplate):
            rendered(LONG)
    begun = time.thread_time()

    assert rendered(LONG, slow) == "long"
    assert took < time.thread_time() - begun


def test_large_texts_without_a_loop_are_stopped_early_too(impatient):
    template = "{{ ('x' * 16000000)" + 8 * "|upper|lower" + "|length }}"
    read_template(template)

    with quick_only(), pytest.raises(SlowTemplate):
        rendered(template)
    assert rendered(template) == "16000000"


def test_a_rendering_that_nothing_could_stop_is_the_last_one_where_others_wait(impatient):
    template = "{% set a = 'x' * 1000000 %}" + 60 * "{% if 'xy' in a %}{% endif %}" + "ok"
    read_template(template)

    with quick_only():
        assert rendered(template) == "ok"
        with pytest.raises(SlowTemplate):
            rendered(template)


def test_a_template_is_not_compiled_where_others_wait():
    template = "{{ messages[0].content }} {# of this test only #}"

    with quick_only(), pytest.raises(SlowTemplate):
        rendered(template)

    assert rendered(template) == "hi "


def test_a_template_that_refuses_messages_is_not_slow():
    template = "{% if messages[0].content == 'no' %}{{ raise_exception('no') }}{% endif %}ok"
    read_template(template)

    with quick_only():
        with pytest.raises(CoreError, match="refuses these messages"):
            rendered(template, [{"role": "user", "content": "no"}])
        assert rendered(template) == "ok"


def test_content_is_text_for_a_template_that_takes_text():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]

    text = rendered(
        "{% for m in messages %}{{ m.content }}{% endfor %}", [{"role": "user", "content": parts}]
    )

    assert text == "a\nb"


LISTS = (
    "{% for m in messages %}{% for p in m.content %}"
    "{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endfor %}"
)


def test_content_is_a_list_for_a_template_that_takes_only_lists():
    assert rendered(LISTS) == "hi"


PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
IMAGE = [
    {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": PNG}},
            {"type": "text", "text": "what?"},
        ],
    }
]


def test_image_is_where_the_template_or_the_engine_says():
    assert rendered(LISTS, IMAGE) == "<image>what?"
    assert rendered(LISTS, IMAGE, media_marker="<__media__>") == "<__media__>what?"
    assert "user\n<__media__>\nwhat?" in rendered("chatml", IMAGE, media_marker="<__media__>")


def test_image_without_a_place_is_refused():
    with pytest.raises(CoreError, match="takes no images"):
        rendered("chatml", IMAGE)


def test_text_cannot_stand_for_an_image():
    with pytest.raises(CoreError, match=r"messages\[0\]\.content"):
        rendered(
            "chatml", [{"role": "user", "content": "a <__media__>"}], media_marker="<__media__>"
        )


def test_developer_is_system_for_a_template_without_developers():
    assert "<|im_start|>system\nbe kind" in rendered(
        "chatml", [{"role": "developer", "content": "be kind"}, *USER]
    )


def test_system_text_moves_to_the_user_where_the_template_has_no_system():
    template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
    )

    assert (
        rendered(template, [{"role": "system", "content": "be kind"}, *USER]) == "user:be kind\nhi;"
    )


def test_tools_are_described_to_a_model_whose_template_has_no_tools():
    text = rendered("chatml", [{"role": "system", "content": "be kind"}, *CALLING], [TOOL])

    assert text.startswith("<|im_start|>system\nbe kind\n")
    assert '"name":"add"' in text
    assert '<tool_call>\n{"name":"add","arguments":{"a":1}}\n</tool_call>' in text
    assert "<|im_start|>user\n<tool_response>\n3\n</tool_response>" in text


def test_tools_and_calls_are_the_templates_where_it_has_them():
    template = (
        "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}"
        "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}"
        "{% endfor %}{% endfor %}"
    )

    text = rendered(template, CALLING, [TOOL])

    assert text.startswith('[{"type": "function"')
    assert text.endswith('[user]1+2?[assistant]add{"a": 1}[tool]3')


def test_last_message_is_continued():
    messages = [*USER, {"role": "assistant", "content": "The answer "}]

    text = rendered("chatml", messages, continue_final_message=True)

    assert text == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nThe answer "


def test_the_last_of_equal_texts_is_continued():
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": " a \n"}]

    assert (
        rendered("{{ messages[1].content }}a|", messages, continue_final_message=True) == " a \na"
    )


def test_the_time_to_find_the_last_message_grows_with_its_length_only():
    messages = [
        {"role": "user", "content": "a" * 300_000},
        {"role": "assistant", "content": "aa</think>" + "a" * 150_000},
    ]
    template = "{{ messages[0].content }}{{ messages[1].content.split('</think>')[1] }}"
    start = time.thread_time()

    with pytest.raises(CoreError, match="the last message is not in its text"):
        rendered(template, messages, continue_final_message=True)

    assert time.thread_time() - start < 2  # 0.01 s; a search in square time takes 7 s


def test_many_calls_are_written_for_a_template_that_knows_none():
    call = CALLING[1]["tool_calls"][0]
    calls = {**CALLING[1], "content": "so", "tool_calls": [call] * 60_000}
    start = time.thread_time()

    found = _without_calls({**calls, "content": [{"type": "text", "text": "so"}]})

    assert time.thread_time() - start < 3  # 0.05 s; copies of the list for each call take 7 s
    assert len(found["content"]) == 60_001
    assert found == _without_calls(calls)


def test_calls_are_not_added_to_the_message_of_the_request():
    message = {**CALLING[1], "content": [{"type": "text", "text": "so"}]}

    _without_calls(message)

    assert message["content"] == [{"type": "text", "text": "so"}]


@pytest.mark.parametrize(
    "messages, arguments",
    [(USER, {}), ([{"role": "assistant", "content": "a"}], {"add_generation_prompt": True})],
)
def test_message_that_cannot_be_continued_is_refused(messages, arguments):
    with pytest.raises(CoreError, match="continue_final_message"):
        rendered("chatml", messages, continue_final_message=True, **arguments)


def test_jinja_is_imported_with_the_first_template():
    show = "import sys, core_generate.chat; print('jinja2' in sys.modules)"

    found = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)

    assert found.stdout == "False\n"
