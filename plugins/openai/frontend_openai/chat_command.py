"""`core chat`: a conversation with a model of a running server, in a terminal.

lines of a person ─► [Conversation] ─► POST /v1/chat/completions ─► events ─► pieces of text
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from core.errors import CoreError, invalid
from frontend_openai.chat_client import ChatClient, printable

summary = "talk to a model of a running server"

_HELP = """\
/new            begin a new conversation
/system TEXT    begin a new conversation with these instructions
/model NAME     go on with another model
/exit           end, as Ctrl-D does
A line that ends with \\ continues in the next one. Ctrl-C ends an answer."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("text", metavar="TEXT", nargs="*", help="one message; else they are read, line by line")
    add("--url", default="http://localhost:8000", help="address of the server: %(default)s")
    add("--model", default="", help="its name; needed if the server has several")
    add("--system", default="", help="instructions for the model")
    add("--max-tokens", type=int, help="tokens of an answer at most")
    add("--temperature", type=float, help="0 takes the most likely token each time")
    add("--token", default=os.environ.get("CORE_TOKEN", ""), help="or the variable CORE_TOKEN")
    add("--ca-file", default="", help="certificates to trust, PEM; else those of the system")


def run(namespace: argparse.Namespace) -> int:
    """Answer one message, or those that a person types. Return the exit status, which is 130 after Ctrl-C.

    The message is TEXT, or the standard input if that is no terminal.
    Raises CoreError if no server, no model or no answer is there.
    """
    fields = {"max_tokens": namespace.max_tokens, "temperature": namespace.temperature}
    client = ChatClient(
        namespace.url,
        namespace.token,
        namespace.ca_file,
        {name: value for name, value in fields.items() if value is not None},
    )
    client.model = namespace.model or _only(client.models(), namespace.url)
    conversation = Conversation(client, namespace.system)
    text = " ".join(namespace.text)
    if not text and not sys.stdin.isatty():
        text = sys.stdin.read().strip()
        if not text:
            raise invalid("the standard input is empty; write a message: core chat TEXT")
    if text:
        return 0 if conversation.answer(text) else 130
    print(f"{printable(client.model)} at {namespace.url}. /help lists commands, Ctrl-D ends.")
    conversation.talk()
    return 0


def _only(names: list[str], url: str) -> str:
    if len(names) == 1:
        return names[0]
    if not names:
        raise invalid(f"the server at {url} has no model that generates text")
    raise invalid(
        f"the server at {url} has several models; choose one with --model: {', '.join(names)}"
    )


class Conversation:
    """Messages so far, and the client that gets answers to them.

    system   instructions that precede the messages; "" for none
    """

    def __init__(self, client: ChatClient, system: str):
        self._client = client
        self._begin(system)

    def _begin(self, system: str) -> None:
        self._system = system
        self._messages: list[dict[str, str]] = []
        if system:
            self._messages.append({"role": "system", "content": system})

    def talk(self) -> None:
        """Answer the lines of a terminal until its end. Errors are printed; the conversation goes on."""
        try:
            import readline  # noqa: F401  (input gets a history and its keys)
        except ImportError:
            pass
        while (text := _read()) is not None:
            try:
                if text.startswith("/"):
                    if not self._command(*text[1:].partition(" ")[::2]):
                        return
                elif text:
                    self.answer(text)
            except CoreError as error:
                print(f"error: {error.message}", file=sys.stderr)

    def answer(self, text: str) -> bool:
        """Print the answer to a message as it arrives. Return False if Ctrl-C has ended it.

        Raises CoreError if there is no whole answer; the message is then no part of the conversation.
        """
        self._messages.append({"role": "user", "content": text})
        pieces: list[str] = []
        whole = True
        try:
            _show(self._client.pieces(self._messages), pieces)
        except KeyboardInterrupt:  # what has arrived stays in the conversation
            whole = False
        except CoreError:
            self._messages.pop()
            if pieces:
                print()
            raise
        print()
        self._messages.append({"role": "assistant", "content": "".join(pieces)})
        return whole

    def _command(self, name: str, rest: str) -> bool:
        """Carry out a command. Return False if it ends the conversation."""
        if name in ("exit", "quit"):
            return False
        if name == "new":
            self._begin(self._system)
        elif name == "system":
            self._begin(rest.strip())
        elif name == "model" and rest.strip():
            self._client.model = rest.strip()
        else:
            print(_HELP)
        return True


def _read() -> str | None:
    """Return what a person has typed; "" after Ctrl-C; None at the end of the input."""
    try:
        text = input("> ")
        while text.endswith("\\"):
            text = text[:-1] + "\n" + input("  ")
    except KeyboardInterrupt:
        print()
        return ""
    except EOFError:
        print()
        return None
    return text.strip()


def _show(arriving: Iterable[str], pieces: list[str]) -> None:
    for piece in arriving:
        pieces.append(piece)
        sys.stdout.write(printable(piece))
        sys.stdout.flush()
