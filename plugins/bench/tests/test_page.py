"""The commands of docs/operate/bench.md run. Only rounds are shorter, and ports are those of the test."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import core
from core.plugins.commands import run_command

PAGE = Path(__file__).parents[3] / "docs" / "operate" / "bench.md"
QUICK = ["-p", "40ms", "--rounds", "2", "--warmup", "0s"]


def commands():
    if not PAGE.exists():  # the distribution alone
        return []
    blocks = re.findall(
        r"<!-- tested by: \S+test_page.py -->\n```sh\n(.*?)```", PAGE.read_text(), re.S
    )
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    pytest.importorskip("frontend_openai")
    pytest.importorskip("backend_testing.letters")
    folder = tmp_path_factory.mktemp("chat")
    (folder / "chat" / "1").mkdir(parents=True)
    (folder / "chat" / "config.pbtxt").write_text('backend: "letters"\n')
    server = core.Server(model_repository=[str(folder)]).start()
    for name in ("digits", "wine"):
        server.bind(
            name, lambda x: x, inputs={"x": ("FP32", [8])}, outputs={"y": ("FP32", [8])}, batching=True
        )  # fmt: skip

    def words(text):
        for word in text[0].split():
            yield {"word": np.array([word], object)}

    server.bind("words", words, inputs={"text": ("BYTES", [1])}, outputs={"word": ("BYTES", [1])})
    yield server.serve(http_port=0, grpc_port=0)
    server.stop()


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_page_runs(ports, command, tmp_path, capsys, monkeypatch):
    words = shlex.split(command.replace("localhost:9000", f"127.0.0.1:{ports['http']}"))
    assert words[:2] == ["core", "bench"]
    protocol = "grpc" if "grpc" in words else "http"
    monkeypatch.chdir(tmp_path)

    status = run_command("bench", [*words[2:], "-u", f"127.0.0.1:{ports[protocol]}", *QUICK])

    shown = capsys.readouterr()
    assert (status, shown.err) == (0, ""), shown.out
    assert "answers/s" in shown.out
    for name in re.findall(r"report\.\w+", command):
        assert (tmp_path / name).stat().st_size > 100


@pytest.mark.skipif(not PAGE.exists(), reason="the distribution alone")
def test_the_page_has_commands():
    assert len(commands()) >= 10
