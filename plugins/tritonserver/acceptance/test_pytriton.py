"""PyTriton 0.7's RemoteTriton: it loads its proxy model into our server, which calls the function back."""

from pathlib import Path

import pytest


@pytest.mark.timeout(300)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_function_of_another_process_is_served(tools, tmp_path, protocol):
    pytest.importorskip("zmq", reason="its proxy model needs pyzmq beside the server")
    python = tools.find("pytriton/bin/python")
    (tmp_path / "empty").mkdir()

    with tools.serve(
        f"--model-repository={tmp_path / 'empty'}", "--model-control-mode=explicit"
    ) as ports:
        url = f"{protocol}://127.0.0.1:{ports[('http', 'grpc').index(protocol)]}"
        output = tools.run(python, Path(__file__).parent / "remote_triton.py", url)

    assert "batch [[2.0, 4.0], [6.0, 8.0]]" in output
    assert "sample [2.0, 4.0]" in output
