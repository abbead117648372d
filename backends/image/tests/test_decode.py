"""Files become the pixels of PIL and OpenCV; what is no picture, or too large, is refused with numbers."""

import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from backend_image.decode import Decode
from backend_image.headers import NoPicture, read_header
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

FORMATS = ["JPEG", "PNG", "WEBP", "BMP"]


def of_pil(data, grey=False):
    """Return the upright pixels by PIL, red first."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    return np.asarray(image.convert("L" if grey else "RGB"))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", [(1, 1), (7, 300), (240, 320)])
def test_pixels_are_those_of_pil(pictures, options, format, size):
    data = pictures.file(pictures.pixels(1, *size), format)

    found = Decode(options())(data)[..., ::-1]

    assert np.abs(found.astype(int) - of_pil(data)).max() <= 1


@pytest.mark.parametrize(
    "format, mode",
    [
        *(("JPEG", mode) for mode in ("L", "1", "CMYK")),
        *(("PNG", mode) for mode in ("L", "1", "P", "RGBA")),
    ],
)
def test_other_kinds_of_pixels_become_three_channels(pictures, options, format, mode):
    image = Image.fromarray(pictures.pixels(2, 40, 30)).convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, format)

    found = Decode(options())(buffer.getvalue())[..., ::-1]

    expected = of_pil(buffer.getvalue())
    # CMYK has no one right colour: OpenCV and PIL differ by a few levels.
    assert np.abs(found.astype(int) - expected).max() <= (6 if mode == "CMYK" else 1)


@pytest.mark.parametrize("format", FORMATS)
def test_grey_pictures_are_those_of_opencv(pictures, options, format):
    data = pictures.file(pictures.pixels(3, 50, 60), format)

    found = Decode(options(colour="grey"))(data)

    expected = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert np.abs(found.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_pictures_are_turned_upright(pictures, options, orientation, format):
    exif = Image.Exif()
    exif[0x0112] = orientation
    lossless = {"lossless": True} if format == "WEBP" else {}
    data = pictures.file(pictures.pixels(4, 20, 50), format, exif=exif, **lossless)

    found = Decode(options())(data)[..., ::-1]
    as_stored = Decode(options(orientation=False))(data)

    assert np.abs(found.astype(int) - of_pil(data)).max() <= 1
    assert as_stored.shape == (20, 50, 3)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    height=st.integers(1, 90),
    width=st.integers(1, 90),
    quality=st.integers(1, 100),
    subsampling=st.integers(0, 2),
    progressive=st.booleans(),
)
def test_any_jpeg_has_the_pixels_of_pil(
    pictures, options, seed, height, width, quality, subsampling, progressive
):
    pixels = pictures.pixels(seed, height, width)
    data = pictures.file(pixels, quality=quality, subsampling=subsampling, progressive=progressive)

    found = Decode(options())(data)[..., ::-1]

    assert np.abs(found.astype(int) - of_pil(data)).max() <= 1


# what is refused --------------------------------------------------------------


def bomb(width, height):
    """Return a PNG of a hundred bytes that says it has width x height pixels."""

    def chunk(kind, content):
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def jpeg_bomb(data, width, height):
    """Return a JPEG file whose frame says it has width x height pixels."""
    place = data.index(b"\xff\xc0") + 5
    return data[:place] + struct.pack(">HH", height, width) + data[place + 4 :]


def test_a_bomb_is_refused_before_memory_is_allocated(pictures, options):
    small = pictures.file(pictures.pixels(1, 16, 16))

    for data, shown in (
        (bomb(50_000, 50_000), "50000 x 50000 pixels"),
        (jpeg_bomb(small, 60_000, 50_000), "60000 x 50000 pixels"),
        (bomb(2**31 - 1, 2**31 - 1), "2147483647 x 2147483647 pixels"),
    ):
        with pytest.raises(NoPicture) as raised:
            Decode(options())(data)
        assert shown in str(raised.value)
        assert "50000000 of max_megapixels" in str(raised.value)


def test_the_limits_are_options(pictures, options):
    data = pictures.file(pictures.pixels(1, 100, 100), "PNG")

    Decode(options(max_megapixels=0.01))(data)
    with pytest.raises(NoPicture, match="100 x 100 pixels, more than the 9999 of max_megapixels"):
        Decode(options(max_megapixels=0.009999))(data)
    with pytest.raises(NoPicture, match=f"{len(data)} bytes, more than the 1000 of max_megabytes"):
        Decode(options(max_megabytes=0.001))(data)


def test_a_file_that_takes_long_to_decode_is_refused(pictures, options):
    """Each scan of a progressive file passes over all pixels, however short it is."""
    data = pictures.file(pictures.pixels(1, 16, 16), progressive=True)
    place = data.rindex(b"\xff\xda")
    scan = data[place:-2]
    slow = data[:place] + scan * 150 + b"\xff\xd9"

    Decode(options())(data)
    with pytest.raises(NoPicture, match=r"a JPEG file of 15\d scans, more than 100"):
        Decode(options())(slow)


@pytest.mark.parametrize("fill", [b"", b"\xff", b"\xff\x01"])
def test_scans_of_a_sequential_file_are_not_counted(pictures, options, fill):
    """Its first scan has all components, so libjpeg refuses a second one before it reads it."""
    data = pictures.file(pictures.pixels(1, 64, 64))
    place = data.rindex(b"\xff\xda")
    repeated = data[:place] + fill + data[place:-2] * 150 + b"\xff\xd9"

    assert read_header(repeated).width == 64
    with pytest.raises(NoPicture, match=r"damaged JPEG file: .* more than one scan"):
        Decode(options())(repeated)


def test_scans_are_not_hidden_behind_a_byte_that_no_marker_has(pictures):
    """libjpeg looks for the next marker right after it, and does not skip a length."""
    data = pictures.file(pictures.pixels(1, 16, 16))

    with pytest.raises(NoPicture, match="a wrong marker at byte 2"):
        read_header(data[:2] + b"\xff\0\0\x04\0\0" + data[2:])


@pytest.mark.parametrize("marker", [b"\xff", b"\xff\x01", b"\xff\xfe\0\x02"])
def test_very_many_markers_are_refused(pictures, marker):
    data = pictures.file(pictures.pixels(1, 16, 16))

    assert read_header(data[:2] + marker * 1000 + data[2:]).width == 16
    with pytest.raises(NoPicture, match="a JPEG file of 10000 markers or more"):
        read_header(data[:2] + marker * 10_000 + data[2:])


def test_very_many_chunks_of_a_png_are_refused(pictures):
    data = pictures.file(pictures.pixels(1, 16, 16), "PNG")
    chunk = struct.pack(">I4sI", 0, b"teXt", zlib.crc32(b"teXt"))
    end = data.rindex(b"IEND") - 4

    assert read_header(data[:end] + chunk * 1000 + data[end:]).width == 16
    with pytest.raises(NoPicture, match="a PNG file of 100000 chunks or more"):
        read_header(data[:end] + chunk * 100_000 + data[end:])


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_without_its_end_is_refused_wherever_it_ends(pictures, options, format):
    data = pictures.file(pictures.pixels(1, 60, 60), format)
    decode = Decode(options())

    for length in {*range(0, 60), *range(60, len(data) - 2, 97), len(data) - 2}:
        with pytest.raises(NoPicture):
            decode(data[:length])


def test_the_end_of_a_thumbnail_is_not_the_end_of_the_file(pictures, options):
    thumbnail = pictures.file(pictures.pixels(1, 8, 8))
    data = pictures.file(pictures.pixels(1, 60, 60), exif=b"Exif\0\0" + thumbnail)
    assert data.count(b"\xff\xd9") == 2

    with pytest.raises(NoPicture, match="without its end"):
        Decode(options())(data[:-100])


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "its 0 bytes begin with nothing"),
        (b"no picture", "its 10 bytes begin with 6e 6f 20 70"),
        (b"GIF89a" + b"\0" * 50, "it is no JPEG, PNG, WebP or BMP file"),
        (b"\xff\xd8\xff\xd9", "a JPEG file without a frame"),
        (b"RIFF\x04\0\0\0WAVE", "no WebP file"),
        (bomb(0, 5), "0 x 5 pixels"),
    ],
)
def test_what_is_no_picture_is_refused(options, data, message):
    with pytest.raises(NoPicture) as raised:
        Decode(options())(data)

    assert message in str(raised.value)


@settings(max_examples=150)
@given(data=st.data(), format=st.sampled_from(FORMATS))
def test_a_damaged_file_is_decoded_or_refused(pictures, options, data, format):
    file = bytearray(pictures.file(pictures.pixels(1, 30, 30), format))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(file) - 1))
        file[place] = data.draw(st.integers(0, 255))

    try:
        found = Decode(options(max_megapixels=1))(bytes(file))
    except NoPicture:
        return

    assert found.dtype == np.uint8
    assert found.shape[2] == 3


@settings(max_examples=100)
@given(
    st.binary(max_size=200),
    st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF1234WEBP", b"BM"]),
)
def test_any_bytes_have_a_header_or_are_refused(tail, magic):
    try:
        header = read_header(magic + tail)
    except NoPicture:
        return

    assert header.width >= 1
    assert 1 <= header.orientation <= 8
