"""What *Try it* takes and shows beside numbers: the camera, sound, and boxes on a picture."""

import asyncio
import json
import math
import re
import struct
import time
import wave

import pytest

PAIR = """
backend: "identity"
max_batch_size: 0
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 3, 32, 32 ] }
input { name: "INPUT1" data_type: TYPE_FP32 dims: [ -1, 6 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 3, 32, 32 ] }
output { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ -1, 6 ] }
"""


@pytest.fixture(scope="module")
def served(serve_all):
    def write(models):
        models.write("detector", PAIR)
        models.identity("speech", [-1], tensors=("INPUT0", "OUTPUT0"))
        models.identity("short", [800], tensors=("INPUT0", "OUTPUT0"))

    return serve_all(write).ready("detector", "speech", "short")


# Keeps each track of camera and microphone that the page has got.
TRACKS = """
const devices = navigator.mediaDevices, ask = devices.getUserMedia.bind(devices);
window.tracks = [];
devices.getUserMedia = async (wanted) => {
  const found = await ask(wanted);
  window.tracks.push(...found.getTracks());
  return found;
};
"""


async def tracks(browser):
    """Return the state of each track: "live" or "ended"."""
    return await browser.page.evaluate("tracks.map((each) => each.readyState)")


async def until(page, script):
    """Wait until an expression is true. The policy of the page refuses wait_for_function of a text."""
    end = time.monotonic() + 30
    while not await page.evaluate(script):
        assert time.monotonic() < end, script
        await asyncio.sleep(0.05)


async def try_it(browser, served, model):
    """Open the form of a model."""
    await browser.page.add_init_script(TRACKS)
    await browser.page.goto(f"{served.url}console#/model/{model}/try")
    await browser.page.get_by_role("button", name="Run", exact=True).wait_for()


async def run(browser):
    await browser.page.get_by_role("button", name="Run", exact=True).click()
    await browser.text("Answered in").wait_for()


async def test_a_picture_of_the_camera_and_the_boxes_on_it(served, browse):
    async with browse() as browser:
        page = browser.page
        await try_it(browser, served, "detector")
        picture = page.get_by_role("group", name="INPUT0")
        await picture.get_by_role("button", name="Image").click()
        await picture.get_by_role("button", name="Camera").click()
        await page.get_by_label("What the camera sees").wait_for()
        await page.get_by_role("button", name="Take the picture").click()
        await page.get_by_role("img", name="The picture as the model gets it").wait_for()
        after = await tracks(browser)
        boxes = page.get_by_role("group", name="INPUT1")
        await boxes.get_by_label("Shape of INPUT1").fill("2, 6")
        rows = "0.25 0.25 0.75 0.5 0.9 7   0.1 0.1 0.2 0.2 0.4 3"
        await boxes.locator("textarea").fill(rows)
        await run(browser)
        await page.get_by_role("img", name="2 boxes on the picture").wait_for()
        first = page.locator(".boxes rect").first
        drawn = [float(await first.get_attribute(name)) for name in ("x", "y", "width", "height")]
        text = await page.locator(".boxes text").first.text_content()
        await page.get_by_label("Least score").fill("0.5")
        await page.get_by_role("img", name="1 box on the picture").wait_for()
        await page.get_by_label("Numbers of a box").select_option("x y width height")
        width = await page.locator(".boxes rect").first.get_attribute("width")

    assert after == ["ended"]
    assert drawn == [8, 8, 16, 8]
    assert text == "7 0.90"
    assert float(width) == 24
    assert browser.problems == []


def tone(path, rate, seconds):
    """Write a tone of 440 Hz on the left channel, and silence on the right one."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(rate)
        for i in range(int(rate * seconds)):
            value = math.sin(2 * math.pi * 440 * i / rate)
            file.writeframes(struct.pack("<hh", int(value * 32000), 0))


async def answer(browser):
    await browser.page.locator(".output").get_by_role("button", name="JSON").click()
    return json.loads(await browser.page.locator(".output pre").inner_text())[0]


async def test_a_sound_is_mixed_and_has_the_rate_of_the_model(served, browse, tmp_path):
    tone(tmp_path / "tone.wav", 8000, 0.05)

    async with browse() as browser:
        page = browser.page
        await try_it(browser, served, "speech")
        await page.get_by_role("button", name="Sound").click()
        await page.locator("input[accept^=audio]").set_input_files(tmp_path / "tone.wav")
        await browser.text("0.05 s, 800 samples").wait_for()
        await run(browser)
        resampled = await answer(browser)
        await page.get_by_label("Samples a second").select_option("8000")
        await browser.text("0.05 s, 400 samples").wait_for()
        await run(browser)
        await until(page, "document.querySelector('.output code').textContent.includes('400')")
        plain = await answer(browser)

    assert len(resampled) == 800
    expected = [math.sin(2 * math.pi * 440 * i / 8000) * 32000 / 32768 / 2 for i in range(400)]
    assert plain == pytest.approx(expected, abs=1e-3)
    assert browser.problems == []


async def test_rows_without_a_box_are_not_drawn(served, browse):
    script = """async (file) => {
      const { boxesOf, boxesOn } = await import(file);
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = 100;
      const values = [0.1, 0.1, 0.5, 0.5, NaN, NaN, NaN, NaN, 0, 0, 0, 0];
      const found = { name: "boxes", datatype: "FP32", shape: [3, 4], values };
      const texts = { name: "scores", datatype: "BYTES", shape: [3], values: ["a", "b", "c"] };
      const element = boxesOn(canvas, boxesOf(found, [found, texts]));
      const drawn = [...element.querySelectorAll("rect")];
      return drawn.map((each) => [each.getAttribute("x"), each.getAttribute("width")]);
    }"""

    async with browse() as browser:
        await browser.page.goto(f"{served.url}console")
        found = await browser.page.evaluate(script, f"{served.url}console/boxes.js")

    assert found == [["10", "40"]]


# Makes what a browser passes for dragged files.
DRAGGED = """(files) => {
  const dragged = new DataTransfer();
  for (const [name, bytes] of files) dragged.items.add(new File([new Uint8Array(bytes)], name));
  return dragged;
}"""


async def drop(area, *files):
    """Drag files over an element and drop them; return whether the element was marked in between."""
    names_and_bytes = [[each.name, list(each.read_bytes())] for each in files]
    dragged = await area.page.evaluate_handle(DRAGGED, names_and_bytes)
    marks = "(element) => element.classList.contains('over')"
    await area.dispatch_event("dragover", {"dataTransfer": dragged})
    marked = await area.evaluate(marks)
    await area.dispatch_event("drop", {"dataTransfer": dragged})
    return marked and not await area.evaluate(marks)


async def test_a_picture_and_a_sound_are_dropped(served, browse, picture, tmp_path):
    tone(tmp_path / "tone.wav", 44100, 0.5)

    async with browse() as browser:
        page = browser.page
        await try_it(browser, served, "detector")
        image = page.get_by_role("group", name="INPUT0")
        await image.get_by_role("button", name="Image").click()
        marked = [await drop(image.locator(".drop"), picture)]
        await image.get_by_text("→ 32").wait_for()
        marked.append(await drop(image.locator(".drop")))  # a text, say: the picture stays
        await image.get_by_text("→ 32").wait_for()
        await page.evaluate("location.hash = '#/model/speech/try'")
        await page.get_by_role("button", name="Sound").click()
        marked.append(await drop(page.locator(".drop"), tmp_path / "tone.wav"))
        await page.locator(".preview").get_by_text("0.50 s, 8000 samples").wait_for()

    assert marked == [True, True, True]
    assert browser.problems == []


async def test_camera_and_microphone_are_off_when_they_are_not_needed(served, browse):
    async with browse() as browser:
        page = browser.page
        await try_it(browser, served, "detector")
        picture = page.get_by_role("group", name="INPUT0")
        await picture.get_by_role("button", name="Image").click()
        await picture.get_by_role("button", name="Camera").click()
        await page.locator("video").wait_for()
        await picture.get_by_role("button", name="Camera", exact=True).click()
        await until(page, "tracks.length == 2 && tracks[0].readyState == 'ended'")
        await picture.get_by_role("button", name="Random").click()
        after_kind = await tracks(browser)
        await page.evaluate("location.hash = '#/model/speech/try'")
        await page.get_by_role("button", name="Sound").click()
        for number in (3, 4):
            await page.get_by_role("button", name="Record").click()
            await until(page, f"tracks.length == {number}")
        await page.get_by_role("button", name="Stop").click()
        await page.locator(".preview").get_by_text("samples").wait_for()
        await page.get_by_role("button", name="Record").click()
        await until(page, "tracks.length == 5")
        await page.evaluate("location.hash = '#/models'")
        await until(page, "tracks.every((each) => each.readyState == 'ended')")

    assert after_kind == ["ended", "ended"]


async def test_a_recording_fills_a_fixed_size(served, browse):
    async with browse() as browser:
        page = browser.page
        await try_it(browser, served, "short")
        await page.get_by_role("button", name="Sound").click()
        await page.get_by_role("button", name="Record").click()
        await page.wait_for_timeout(300)
        await page.get_by_role("button", name="Stop").click()
        await page.locator(".preview").get_by_text(re.compile("s, 800 samples")).wait_for()
        await run(browser)

        assert len(await answer(browser)) == 800
    assert browser.problems == []


async def test_what_is_no_sound_is_said(served, browse, tmp_path):
    (tmp_path / "notes.txt").write_text("no sound")

    async with browse() as browser:
        await try_it(browser, served, "speech")
        await browser.page.get_by_role("button", name="Sound").click()
        await browser.page.locator("input[accept^=audio]").set_input_files(tmp_path / "notes.txt")
        await browser.text("“notes.txt” is no sound").wait_for()
