"""`core chat`: one message, a conversation in a terminal, and what it says when something is wrong."""

import io
import os
import pty
import select
import signal
import sys
import time

import pytest

from core.plugins.commands import run_command

ESCAPES = "\x1b[2J\x9b"


@pytest.fixture
def chat(open_server, capsys, monkeypatch):
    """chat(*arguments, typed="…"): run the command against a server; return status, output and errors."""
    url = f"http://127.0.0.1:{open_server()[1]}"

    def run(*arguments, typed="", terminal=False):
        entered = io.StringIO(typed)
        entered.isatty = lambda: terminal
        monkeypatch.setattr(sys, "stdin", entered)
        status = run_command("chat", ["--url", url, *arguments])
        return status, *capsys.readouterr()

    return run


def test_one_message_is_answered(chat, models):
    assert chat("--model", "words", "two", "words") == (0, "two words \n", "")
    assert models.seen == [b"two words"]


def test_a_message_may_come_from_a_pipe(chat):
    assert chat("--model", "words", typed="from a pipe\n") == (0, "from a pipe \n", "")


def test_an_empty_pipe_is_an_error(chat):
    status, _, error = chat("--model", "words")
    assert status == 1
    assert "the standard input is empty" in error


def test_fields_go_with_each_request(chat, models):
    chat(
        "--model",
        "engine",
        "--max-tokens",
        "2",
        "--temperature",
        "0.5",
        "--system",
        "Be brief.",
        "hi",
    )

    (seen,) = models.seen
    assert seen["sampling_parameters"][0].count(b'"max_tokens":2') == 1
    assert seen["sampling_parameters"][0].count(b'"temperature":0.5') == 1
    assert b"<|system|>Be brief." in seen["text_input"][0]


def test_a_conversation_remembers_what_was_said(chat, models):
    typed = "hello\nand you?\n/new\nagain\n/exit\nnever read\n"
    status, out, error = chat("--model", "engine", typed=typed, terminal=True)

    assert (status, error) == (0, "")
    assert out.count("one two three") == 3
    prompts = [each["text_input"][0].decode() for each in models.seen]
    said = "<|user|>hello<|assistant|>one two three<|user|>and you?<|assistant|>"
    assert prompts[1].endswith(said)
    assert "hello" not in prompts[2]
    assert len(prompts) == 3


def test_an_error_is_no_part_of_the_conversation(chat, models):
    typed = "late\n/model words\nfine\n"
    status, out, error = chat("--model", "broken", typed=typed, terminal=True)

    assert status == 0
    assert "> fine \n" in out
    assert "the model has no more text" in error
    assert models.seen == [b"fine"]


def test_a_line_may_go_on_and_commands_are_listed(chat, models):
    status, out, _ = chat("--model", "words", typed="one\\\ntwo\n/what\n", terminal=True)

    assert status == 0
    assert models.seen == [b"one\ntwo"]
    assert "/system TEXT" in out


def test_text_cannot_change_the_terminal(chat):
    _, out, _ = chat("--model", "words", f"a{ESCAPES}b")
    assert out == "a[2Jb \n"


def test_a_server_with_several_models_lists_them(chat):
    status, _, error = chat("hi")
    assert status == 1
    assert "choose one with --model: " in error
    assert "words" in error


def test_an_unknown_model_is_named(chat):
    status, _, error = chat("--model", "wrods", "hi")
    assert status == 1
    assert "wrods" in error


def test_no_server(capsys):
    assert run_command("chat", ["--url", "http://127.0.0.1:9", "hi"]) == 1
    assert "no server answers at http://127.0.0.1:9" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://"])
def test_an_address_of_another_form(url, capsys):
    assert run_command("chat", ["--url", url, "hi"]) == 1
    assert f"'{url}' is no address of a server" in capsys.readouterr().err


def test_a_server_without_these_routes(open_server, capsys):
    port = open_server(allow_openai=False)[1]

    assert run_command("chat", ["--url", f"http://127.0.0.1:{port}", "hi"]) == 1
    assert (
        "install the routes of OpenAI" in capsys.readouterr().err
    )  # TensorFlow Serving has /v1/models, too


class Terminal:
    """A child process of `core chat` whose terminal is ours."""

    def __init__(self, *arguments):
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            signal.signal(
                signal.SIGINT, signal.SIG_DFL
            )  # a shell may have started the tests with &
            program = "from core.plugins.commands import run_command; import sys; "
            program += "sys.exit(run_command('chat', sys.argv[1:]))"
            os.execv(sys.executable, [sys.executable, "-c", program, *arguments])
        self.shown = ""

    def type(self, text):
        os.write(self._end, text.encode())

    def until(self, text, timeout_s=20):
        end = time.monotonic() + timeout_s
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            if select.select([self._end], [], [], 0.1)[0]:
                self.shown += os.read(self._end, 4096).decode()

    def ended(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_ctrl_c_ends_an_answer_and_ctrl_d_the_conversation(open_server, models):
    terminal = Terminal("--url", f"http://127.0.0.1:{open_server()[1]}", "--model", "endless")
    try:
        terminal.until("> ")
        terminal.type("go\n")
        terminal.until("xxxx")
        terminal.type("\x03")
        assert models.ended.wait(10)
        terminal.shown = terminal.shown[-1:]
        terminal.until("> ")
        terminal.type("\x04")
        assert terminal.ended() == 0
    except BaseException:
        os.kill(terminal.pid, signal.SIGKILL)
        raise
