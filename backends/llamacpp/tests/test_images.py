"""Images in prompts: SmolLM2 with a small encoder of random weights, which tells colours apart."""

import base64
import io
import json
import os
import shutil
import struct
import threading
import time
import urllib.error
import urllib.request
import zlib

import numpy as np
import pytest
from core_testing.engines.events import Events
from core_testing.leftovers import settles
from gguf_files import projector
from PIL import Image

import core
from core.errors import CoreError

MARKER = "<__media__>"


def picture(color="red", size=(40, 30), kind="PNG", **more):
    written = io.BytesIO()
    Image.new("RGB", size, color).save(written, kind, **more)
    return written.getvalue()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    found = tmp_path_factory.mktemp("encoder") / "mmproj.gguf"
    found.write_bytes(projector())
    return found


@pytest.fixture(scope="module")
def seeing(smollm2, encoder):
    from backend_llamacpp.engine import LlamaEngine
    from backend_llamacpp.settings import Settings

    settings = Settings(
        context=256, slots=2, threads=1, projector=encoder, media=frozenset({"images"})
    )
    engine = LlamaEngine(smollm2, settings)
    yield engine
    engine.close()


@pytest.fixture
def said(seeing):
    """Return a function that generates and returns the text. Raises the error of the last event."""
    from core_generate import Prompt, Sampling

    def said(text, *images, tokens=(), **sampling):
        events = Events()
        options = {"temperature": 0.0, "max_tokens": 8, **sampling}
        seeing.generate(Prompt(text, tokens, images), Sampling(**options), events)
        found = events.all()
        if isinstance(found[-1], CoreError):
            raise found[-1]
        return "".join(each.text for each in found)

    return said


def test_a_cancelled_request_ends_before_its_next_image(seeing, said, monkeypatch):
    from backend_llamacpp import pictures
    from core_generate import Prompt, Sampling

    begun, goes_on, decoded, sent = threading.Event(), threading.Event(), [], []
    bitmap, complete = pictures.bitmap, seeing._library.complete

    def slowly(*given):
        decoded.append(given)
        begun.set()
        assert goes_on.wait(60)
        return bitmap(*given)

    def completed(*given):
        sent.append(given)
        complete(*given)

    monkeypatch.setattr(pictures, "bitmap", slowly)
    monkeypatch.setattr(seeing._library, "complete", completed)
    prompt, events = Prompt("It shows", images=[picture()] * 3), Events()
    generation = seeing.generate(prompt, Sampling(max_tokens=8), events)
    assert begun.wait(60)

    generation.cancel()
    goes_on.set()

    assert settles(lambda: not seeing.status().running)
    assert len(decoded) == 1 and not sent
    assert said("It shows", picture())


def test_the_text_depends_on_the_image(said):
    text = f"Look {MARKER} It shows"
    red, blue = picture("red"), picture("blue")

    assert said(text, red) == said(text, red) != said(text, blue)


def test_images_come_first_where_the_text_has_no_place_for_them(said):
    red, blue = picture("red"), picture("blue")

    assert said("They show", red, blue) == said(f"{MARKER}{MARKER}They show", red, blue)
    assert said("They show", red, blue) != said("They show", blue, red)


def test_without_an_image_the_marker_is_a_text_like_any_other(said):
    assert said(f"{MARKER} is a tag") != said(f"{MARKER} is a tag", picture())


@pytest.mark.parametrize(
    ("text", "tokens", "found"),
    [
        (f"{MARKER} and", (), "1 of them"),
        (f"{MARKER}" * 3, (), "3 of them"),
        ("", (5, 6), "tokens"),
    ],
)
def test_each_image_needs_a_place(said, text, tokens, found):
    with pytest.raises(CoreError, match=f"2 images, so its prompt needs 2 times .* it has {found}"):
        said(text, picture(), picture(), tokens=tokens)


def test_what_cannot_be_decoded_is_refused_and_reaches_no_program(said, tmp_path, monkeypatch):
    ran = tmp_path / "ran"
    for name in ("ffprobe", "ffmpeg"):  # llama.cpp would try them
        (tmp_path / name).write_text(f"#!{shutil.which('sh')}\ntouch {ran}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (30, 40, 3), np.uint8))
    whole = io.BytesIO()
    noise.save(whole, "PNG")

    with pytest.raises(CoreError, match="an image cannot be decoded"):
        said("It shows", whole.getvalue()[:300])
    with pytest.raises(CoreError, match="expected an image: PNG"):
        said("It shows", b"II*\0 a picture of a format that is not allowed")

    assert not ran.exists()


def test_a_structure_holds_beside_an_image(said):
    from core_generate import Structure

    found = said("Is it red?", picture(), structure=Structure(choices=("yes", "no")))

    assert found in ("yes", "no")


def test_log_probabilities_and_counts_are_reported(seeing):
    from core_generate import Prompt, Sampling

    events = Events()
    sampling = Sampling(temperature=0.0, max_tokens=4, logprobs=2)
    seeing.generate(Prompt("It shows", (), (picture(),)), sampling, events)
    found = events.all()

    logprobs = [each for event in found for each in event.logprobs]
    assert len(logprobs) == 4 and all(len(each.top) == 2 for each in logprobs)
    assert found[-1].finish == "length"
    assert found[-1].prompt_tokens > 4  # the four of the image are among them


def test_a_cancelled_generation_ends_in_llama_cpp_too(seeing):
    from core_generate import Prompt, Sampling

    prompt = Prompt("It", (), (picture(),))

    def begun(tokens):
        first = threading.Event()
        sampling = Sampling(temperature=0.0, max_tokens=tokens, ignore_eos=True)
        generation = seeing.generate(prompt, sampling, lambda event: first.set())
        assert first.wait(30)
        return generation

    def seconds_to_end():
        begin = time.monotonic()
        while seeing.status().running:
            time.sleep(0.002)
        return time.monotonic() - begin

    begun(100)
    whole = seconds_to_end()
    begun(200).cancel()

    assert seconds_to_end() < whole / 2


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_a_bitmap_has_the_colours_of_the_image(kind):
    from backend_llamacpp.pictures import bitmap

    found = Image.open(io.BytesIO(bitmap(picture((200, 30, 40), kind=kind))))

    assert (found.format, found.mode, found.size) == ("BMP", "RGB", (40, 30))
    assert np.abs(np.asarray(found, int) - (200, 30, 40)).max() <= 8


def test_a_bitmap_is_upright_and_of_bounded_size(monkeypatch):
    from backend_llamacpp import pictures

    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    turned = pictures.bitmap(picture(kind="JPEG", exif=exif))
    reduced = pictures.bitmap(picture(size=(400, 100)), 3000)
    thin = pictures.bitmap(picture(size=(400, 1)), 10)

    assert Image.open(io.BytesIO(turned)).size == (30, 40)
    width, height = Image.open(io.BytesIO(reduced)).size
    assert width * height <= 3000 and abs(width / height - 4) < 0.2
    assert Image.open(io.BytesIO(thin)).size[1] == 1
    monkeypatch.setattr(pictures, "MOST_OF_A_REQUEST", 8000)
    several = list(pictures.bitmaps([picture(size=(100, 100))] * 10))
    assert sum(map(len, several)) < 3 * 8000 + 10 * 500


def test_an_image_may_not_grow_after_the_check_of_its_header():
    from backend_llamacpp import pictures

    def chunk(kind, data):
        sum_ = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + sum_

    head, bits = b"\x89PNG\r\n\x1a\n", b"\x08\0\0\0\0"
    small, large = (chunk(b"IHDR", struct.pack(">II", side, side) + bits) for side in (1, 8000))
    rows = chunk(b"IDAT", zlib.compress(bytes(8001))) + chunk(b"IEND", b"")

    for file in (head + small + large + rows, head + chunk(b"tEXt", b"a\0b") + large + rows):
        with pytest.raises(CoreError, match=r"8000 x 8000 pixels|expected an image"):
            pictures.bitmap(file)


def test_deep_grey_keeps_its_shades_and_what_is_transparent_is_white():
    from backend_llamacpp import pictures

    def pixels(image):
        written = io.BytesIO()
        image.save(written, "PNG")
        return np.asarray(Image.open(io.BytesIO(pictures.bitmap(written.getvalue()))))

    deep = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)

    assert np.abs(pixels(Image.fromarray(deep))[..., 0] - deep / 257.0).max() <= 1
    assert pixels(Image.new("RGBA", (4, 4), (0, 0, 0, 0))).min() == 255


def test_all_tokens_of_an_image_fit_in_one_batch(encoder, tmp_path):
    from backend_llamacpp.library import _parameters
    from backend_llamacpp.settings import Settings

    def sizes(**settings):
        found = _parameters(tmp_path, Settings(**settings), "")
        return found.n_batch, found.n_ubatch

    assert sizes() == (128, 128)
    assert sizes(slots=100) == (200, 200)
    assert sizes(projector=encoder) == (2048, 2048)
    assert sizes(projector=encoder, batch=1500) == (1500, 1500)
    assert sizes(batch=1500) == (1500, 512)


@pytest.fixture(scope="module")
def served(smollm2, encoder, tmp_path_factory):
    pytest.importorskip("openai")
    pytest.importorskip("frontend_openai")
    repository = tmp_path_factory.mktemp("models")
    folder = repository / "m" / "1"
    folder.mkdir(parents=True)
    (folder / "model.gguf").symlink_to(smollm2)
    (folder / "mmproj.gguf").symlink_to(encoder)
    settings = {"context": "256", "slots": "1", "threads": "1"}
    lines = [
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in settings.items()
    ]
    (repository / "m" / "config.pbtxt").write_text("\n".join(['backend: "llamacpp"', *lines]))
    with core.Server(model_repository=[str(repository)]) as server:
        server.start()
        yield server.serve(http_port=0)["http"]


def test_a_chat_has_images_in_openais_form(served):
    import openai

    def shown(color):
        data = base64.b64encode(picture(color)).decode()
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}

    def chat(*parts):
        answer = client.chat.completions.create(
            model="m",
            temperature=0,
            max_tokens=6,
            messages=[{"role": "user", "content": list(parts)}],
        )
        return answer.choices[0].message.content

    question = {"type": "text", "text": "What is it?"}
    with openai.OpenAI(base_url=f"http://127.0.0.1:{served}/v1", api_key="none") as client:
        assert chat(question, shown("red")) == chat(question, shown("red"))
        assert chat(question, shown("red")) != chat(question, shown("blue"))
        with pytest.raises(openai.BadRequestError, match="stands for an image"):
            chat({"type": "text", "text": MARKER}, shown("red"))


def test_generate_has_images_in_base64(served):
    def generate(data):
        body = {
            "text_input": "It shows",
            "image": base64.b64encode(data).decode(),
            "sampling_parameters": '{"temperature": 0, "max_tokens": 6}',
        }
        address = f"http://127.0.0.1:{served}/v2/models/m/generate"
        request = urllib.request.Request(address, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)["text_output"]

    assert generate(picture("red")) == generate(picture("red")) != generate(picture("blue"))
    with pytest.raises(urllib.error.HTTPError) as refused:
        generate(b"no picture")
    assert "image: expected an image: PNG, JPEG" in refused.value.read().decode()
