"""The commands that the page offers send the request of its form."""

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
