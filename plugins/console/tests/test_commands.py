"""The commands that the page offers send the request of its form."""

import json
import shutil
import subprocess
import sys

import pytest


async def commands(served, browse, model, fill):
    """Fill in the form of a model, run it, and return title → command."""
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/model/{model}/try")
        await fill(page)
        await page.get_by_role("button", name="Run", exact=True).click()
        await browser.text("The same from a program").wait_for()
        box = page.get_by_label("Command").last
        found = {}
        for title in ("curl", "tritonclient"):
            await page.get_by_role("button", name=title, exact=True).click()
            found[title] = await box.inner_text()
    return found


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_numbers_arrive_as_they_were_written(models, serve, browse):
    pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    models.identity("steady", [3])
    served = serve().ready("steady")

    async def fill(page):
        await page.locator("textarea.mono").first.fill("1.5 -2 0.1")

    found = await commands(served, browse, "steady", fill)

    assert '"data":[1.5,-2.0,0.1]' in output_of("sh", "-c", found["curl"]).replace(
        "0.10000000149011612", "0.1"
    )
    assert output_of(sys.executable, "-c", found["tritonclient"]).split() == [
        "[[",
        "1.5",
        "-2.",
        "0.1]]",
    ]


async def test_texts_with_quotes_arrive_as_they_were_written(models, serve, browse):
    pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    config = (
        'backend: "identity"\nmax_batch_size: 4\n'
        'input { name: "INPUT0" data_type: TYPE_STRING dims: [1] }\n'
        'output { name: "OUTPUT0" data_type: TYPE_STRING dims: [1] }\n'
    )
    models.write("echo", config)
    served = serve().ready("echo")

    async def fill(page):
        await page.locator("textarea.mono").first.fill('it\'s "fine" $HOME')

    found = await commands(served, browse, "echo", fill)

    assert 'it\'s \\"fine\\" $HOME' in output_of("sh", "-c", found["curl"])
    printed = output_of(sys.executable, "-c", found["tritonclient"])
    assert printed.replace("\\'", "'") == "[[b'it's \"fine\" $HOME']]\n"


def form(**more):
    """Return what the page gives to `snippets`, with one number as the input."""
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "values": [2], "size": 4}
    outputs = [{"name": "OUTPUT0"}]
    given = {"model": "steady", "inputs": [tensor], "outputs": outputs, "parameters": {}}
    return {**given, "stream": False, "token": False, "grpc": "", **more}


async def snippets(served, browse, **more):
    script = """async ([file, form]) => (await import(file)).snippets(form)"""
    async with browse() as browser:
        await browser.page.goto(f"{served.url}console")
        found = await browser.page.evaluate(
            script, [f"{served.url}console/snippets.js", form(**more)]
        )
    return dict(found)


FREE = {"text": "true, null and false", "flag": True, "none_of": 0.5, "timeout": 3_000_000}


async def test_free_parameters_arrive_as_they_were_written(models, serve, browse):
    http = pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
    models.identity("steady", [1])
    served = serve().ready("steady")

    found = await snippets(served, browse, version=1, parameters={**FREE, "sequence_id": 7})

    calls = []

    class Client(http.InferenceServerClient):
        def infer(self, *arguments, **more):
            calls.append(more)
            return super().infer(*arguments, **more)

    program = found["tritonclient"].replace("client.InferenceServerClient", "Client")
    exec(program, {"Client": Client})
    (call,) = calls
    assert call.pop("outputs")
    assert call == {
        "model_version": "1",
        "timeout": 3_000_000,
        "sequence_id": 7,
        "parameters": {"text": "true, null and false", "flag": True, "none_of": 0.5},
    }
    assert f"'{served.url}v2/models/steady/versions/1/infer'" in found["curl"]


async def test_grpcurl_sends_parameters_and_asked_outputs(models, serve, browse):
    models.identity("steady", [1])
    served = serve().ready("steady")
    outputs = [{"name": "OUTPUT0", "parameters": {"classification": 3}}]
    more = {"parameters": FREE, "outputs": outputs, "grpc": "localhost:8001", "version": 2}

    found = await snippets(served, browse, **more)
    nested = await snippets(served, browse, **{**more, "parameters": {"list": [1]}})

    message = json.loads(found["grpcurl"].split("-d '")[1].split("'")[0])
    assert message["model_version"] == "2"
    assert message["parameters"] == {
        "text": {"stringParam": "true, null and false"},
        "flag": {"boolParam": True},
        "none_of": {"doubleParam": 0.5},
        "timeout": {"int64Param": 3_000_000},
    }
    assert message["outputs"] == [
        {"name": "OUTPUT0", "parameters": {"classification": {"int64Param": 3}}}
    ]
    assert "grpcurl" not in nested  # a message has no form for a list


async def test_a_command_with_bytes_sends_parameters_and_asked_outputs(
    models, serve, browse, tmp_path
):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    models.identity("steady", [500])
    served = serve().ready("steady")
    values = [0.5] * 500
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 500], "values": values}
    outputs = [{"name": "OUTPUT0", "parameters": {"classification": 3}}]
    more = {"inputs": [{**tensor, "size": 2000}], "outputs": outputs, "parameters": FREE}

    found = await snippets(served, browse, **more)

    (tmp_path / "INPUT0.bin").write_bytes(bytes(2000))
    answer = json.loads(output_of("sh", "-c", f"cd {tmp_path}\n{found['curl']}"))
    assert answer["outputs"][0]["datatype"] == "BYTES"  # classes
    assert answer["outputs"][0]["shape"] == [1, 3]
    assert '"text":"true, null and false"' in found["curl"]
