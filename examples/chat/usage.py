"""Print how to talk to the model of this repository: python examples/chat/usage.py [--http-port=8001]

`make serve-chat` runs this before its server, with the same flags.
"""

from argparse import ArgumentParser

TEXT = """\
When the model is READY, talk to it from another terminal, in this folder.

In the terminal:

    .venv/bin/core chat{url}

By HTTP:

    curl -s {address}/v1/chat/completions -d \\
      '{{"model": "smollm2", "messages": [{{"role": "user", "content": "Name a fruit."}}]}}'

In Python, after pip install openai:

    from openai import OpenAI
    chat = OpenAI(base_url="{address}/v1", api_key="none").chat.completions
    messages = [{{"role": "user", "content": "Name a fruit."}}]
    print(chat.create(model="smollm2", messages=messages).choices[0].message.content)

Ctrl-C here ends the server.
"""


def usage(port: int) -> str:
    """Return the text for a server on a port of this machine."""
    address = f"http://localhost:{port}"
    return TEXT.format(address=address, url="" if port == 8000 else f" --url {address}")


if __name__ == "__main__":
    parser = ArgumentParser(allow_abbrev=False)
    parser.add_argument("--http-port", type=int, default=8000)
    print(usage(parser.parse_known_args()[0].http_port), flush=True)
