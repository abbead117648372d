"""A headless Chromium, driven through its DevTools protocol."""

import asyncio
import base64
import json
import re
import shutil
from contextlib import asynccontextmanager

import aiohttp
import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_START_S = 60
_WAIT_S = 60


class Page:
    """One page.

    requested   URLs that it has asked for
    problems    errors in its console, such as violations of its content security policy
    """

    def __init__(self, socket):
        self._socket = socket
        self._waiting = {}
        self._number = 0
        self.requested = []
        self.problems = []
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self):
        async for message in self._socket:
            found = json.loads(message.data)
            if (waiter := self._waiting.pop(found.get("id"), None)) is not None:
                waiter.set_result(found)
            elif found.get("method") == "Network.requestWillBeSent":
                self.requested.append(found["params"]["request"]["url"])
            elif found.get("method") == "Log.entryAdded":
                entry = found["params"]["entry"]
                if entry["level"] == "error":
                    self.problems.append(entry["text"])
            elif found.get("method") == "Runtime.exceptionThrown":
                self.problems.append(found["params"]["exceptionDetails"]["text"])

    async def command(self, method, **parameters):
        self._number += 1
        waiter = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        found = await asyncio.wait_for(waiter, _WAIT_S)
        assert "error" not in found, found
        return found["result"]

    async def open(self, url):
        """Return when the page and its scripts are there."""
        await self.command("Page.navigate", url=url)
        await self.until(
            f"location.href === {json.dumps(url)} && document.readyState === 'complete'"
        )

    async def value(self, expression):
        """Return the value of a JavaScript expression; of a promise, what it becomes."""
        found = await self.command(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, expression):
        """Return the value of an expression as soon as it is true."""
        loop = asyncio.get_running_loop()
        end = loop.time() + _WAIT_S
        while not (found := await self.value(expression)):
            text = await self.value("document.body ? document.body.innerText.slice(0, 2000) : ''")
            assert loop.time() < end, f"not true within {_WAIT_S} s: {expression}; page: {text}"
            await asyncio.sleep(0.05)
        return found

    async def settled(self):
        """Wait until the page has not changed for half a second: Swagger UI draws in several steps."""
        await self.value(
            """new Promise(done => {
                let timer = setTimeout(done, 500);
                const again = () => { clearTimeout(timer); timer = setTimeout(done, 500); };
                const kinds = {subtree: true, childList: true, attributes: true, characterData: true};
                new MutationObserver(again).observe(document.body, kinds);
            })"""
        )

    async def choose_file(self, expression, path):
        """Choose a file in the input element that an expression names."""
        found = await self.command("Runtime.evaluate", expression=expression)
        element = found["result"]["objectId"]
        await self.command("DOM.setFileInputFiles", files=[str(path)], objectId=element)

    async def screenshot(self, path):
        found = await self.command("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    async def close(self):
        await self._socket.close()
        await self._reading


@asynccontextmanager
async def open_page(folder):
    """Open an empty page in a new Chromium, whose profile is in `folder`. Skips where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser is installed ({', '.join(PROGRAMS)})")
    process = await asyncio.create_subprocess_exec(
        program,
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--no-first-run", "--disable-extensions", "--disable-background-networking"),
        *("--remote-debugging-port=0", f"--user-data-dir={folder}", "--window-size=1100,1600"),
        "about:blank",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        address = await asyncio.wait_for(_address(process.stderr), _START_S)
        rest = asyncio.ensure_future(process.stderr.read())
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{address}/json/list") as response:
                targets = json.loads(await response.read())
            (target,) = [each for each in targets if each["type"] == "page"]
            url = target["webSocketDebuggerUrl"]
            async with session.ws_connect(url, max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Network", "Log"):
                    await page.command(f"{domain}.enable")
                try:
                    yield page
                finally:
                    await page.close()
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), _START_S)
    await rest


async def _address(stderr):
    """Return host and port of the DevTools from the first lines of Chromium."""
    async for line in stderr:
        if found := re.search(rb"DevTools listening on ws://([^/]+)/", line):
            return found[1].decode()
    raise AssertionError("Chromium has ended before it listened")
