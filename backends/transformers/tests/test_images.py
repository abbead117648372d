"""Classes of images are those of transformers' pipeline. Files out of bounds are refused undecoded."""

import base64
import json
import struct
import threading
import zlib

import numpy as np
import pytest
from backend_transformers.folder import Folder
from backend_transformers.image_files import UnreadableImage, read_image
from backend_transformers.model import backend
from backend_transformers.settings import settings_of
from core_testing.example import MODEL
from core_testing.plugin import ModelRepository
from core_testing.served import Served, request_of
from PIL import Image

from core.config import ModelConfig
from core.errors import CoreError, Kind

transformers = pytest.importorskip("transformers", reason="transformers runs the models")
torch = pytest.importorskip("torch", reason="transformers runs the models with it")

from backend_transformers.conformance import drawn, file_of, image_classifier  # noqa: E402
from backend_transformers.images import ImageEngine  # noqa: E402
from backend_transformers.loading import load_images  # noqa: E402

LABELS = {0: "cat", 1: "dog", 2: "über"}
IMAGES = [drawn(48, 32), drawn(20, 60), drawn(32, 32), drawn(100, 90)]


@pytest.fixture
def made(tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    return folder


@pytest.fixture
def engine():
    """Return a function that makes an engine of a folder, with parameters."""
    engines = []

    def engine(folder, **parameters):
        config = config_of(device="cpu", **parameters)
        read = Folder(folder, "m")
        settings = settings_of(config, read)
        engines.append(ImageEngine(load_images(read, settings), settings))
        return engines[-1]

    yield engine
    for each in engines:
        each.close()


def config_of(**parameters):
    config = ModelConfig(name="m")
    for name, value in parameters.items():
        config.parameters[name].string_value = value
    return config


def changed(folder, file, **values):
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def never():
    return False


def served(tmp_path, folder):
    """Return a server with the model of a folder. The file of the weights selects the backend."""
    repository = ModelRepository(tmp_path / "models")
    repository.add(MODEL, "", {each.name: each.read_bytes() for each in folder.iterdir()})
    return Served(backend, repository.path)


def pipeline_of(folder, images):
    """Return what the pipeline of transformers answers for each image: all classes, the likeliest first."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    pipeline = transformers.pipeline(
        "image-classification", model=str(folder), image_processor=processor, device="cpu"
    )
    return pipeline(images, top_k=100)


def resnet(folder):
    """Write a ResNet with random weights. Its processor resizes the shorter side and cuts out the middle."""
    torch.manual_seed(5)
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], id2label=LABELS
    )
    transformers.ResNetForImageClassification(config).eval().save_pretrained(folder)
    transformers.ConvNextImageProcessorPil(
        size={"shortest_edge": 64}, crop_pct=0.9
    ).save_pretrained(folder)


def siglip(folder):
    """Write a SigLIP 2 with random weights. It reads patches of an image, their mask and their shape."""
    torch.manual_seed(5)
    layers = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    patches = {"num_attention_heads": 4, "patch_size": 8, "num_patches": 16}
    config = transformers.Siglip2Config(vision_config=layers | patches, id2label=LABELS)
    transformers.Siglip2ForImageClassification(config).save_pretrained(folder)
    transformers.Siglip2ImageProcessorPil(patch_size=8, max_num_patches=16).save_pretrained(folder)


def vit(folder, problem=None):
    image_classifier(folder, id2label=LABELS, problem_type=problem)


def one_label(folder):
    image_classifier(folder, id2label={0: "cat"})


@pytest.mark.parametrize(
    "make",
    [
        vit,
        lambda folder: vit(folder, "multi_label_classification"),
        lambda folder: vit(folder, "regression"),
        one_label,
        resnet,
        siglip,
    ],
    ids=["vit", "several classes of an image", "regression", "one label", "resnet", "siglip"],
)
def test_classes_are_those_of_the_pipeline_of_transformers(tmp_path, made, make):
    make(made)
    files = [
        file_of(IMAGES[0]),
        file_of(IMAGES[1], "WEBP", lossless=True),
        file_of(IMAGES[2], "JPEG", quality=100, subsampling=0),
        file_of(IMAGES[3]),
    ]
    expected = pipeline_of(made, [read_image(each, 10**6) for each in files])

    with served(tmp_path, made) as server:
        server.load()
        found = server.ask({"image": np.array(files, object)})

    for i, row in enumerate(expected):
        assert [each.decode() for each in found["top_labels"][i]] == [each["label"] for each in row]
        assert {each["label"] for each in row} <= {*LABELS.values()}
        np.testing.assert_allclose(
            found["top_scores"][i], [each["score"] for each in row], atol=1e-5
        )
        assert found["label"][i] == found["top_labels"][i][0]
        assert found["score"][i] == found["top_scores"][i][0] == found["scores"][i].max()


@pytest.mark.parametrize(("top_k", "columns"), [(1, 1), (2, 2), (99, 3)])
def test_top_k_is_the_number_of_classes_with_their_names(tmp_path, made, top_k, columns):
    vit(made)

    with served(tmp_path, made) as server:
        server.load()
        files = np.array([file_of(each) for each in IMAGES], object)
        found = server.ask({"image": files, "top_k": np.array([top_k], np.int32)})
        (refused,) = server.send([request_of({"image": files, "top_k": np.array([0], np.int32)})])

    assert found["top_labels"].shape == found["top_scores"].shape == (4, columns)
    assert found["scores"].shape == (4, 3)
    assert "the input 'top_k' is 0, expected 1 or more" in refused.message


def test_no_image_has_no_classes(made, engine):
    vit(made)

    assert engine(made).classify([], never).shape == (0, 3)


def test_an_image_may_be_base64(made, engine):
    vit(made)
    file = file_of(IMAGES[0])

    found = engine(made).classify([file, base64.encodebytes(file)], never)

    np.testing.assert_array_equal(found[0], found[1])


def test_a_photograph_that_lies_on_its_side_is_turned_upright():
    image = drawn(48, 32)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees

    found = read_image(file_of(image, exif=exif), 10**6)

    assert found.size == (32, 48)
    np.testing.assert_array_equal(np.asarray(found), np.rot90(np.asarray(image), -1))


def test_requests_at_once_get_their_own_rows(made, engine):
    vit(made)
    engine = engine(made, batch="3", threads="2")
    files = [file_of(each) for each in IMAGES]
    expected = [engine.classify([each], never)[0] for each in files]
    found = [None] * 12

    def ask(place):
        found[place] = engine.classify(files[place % 4 :] + files[: place % 4], never)

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    for place, rows in enumerate(found):
        np.testing.assert_allclose(rows, expected[place % 4 :] + expected[: place % 4], atol=1e-5)


def test_images_of_other_sizes_fail_alone_where_the_processor_keeps_sizes(made, engine):
    vit(made)
    changed(made, "preprocessor_config.json", do_resize=False)
    engine = engine(made)
    right, wrong = file_of(IMAGES[2]), file_of(IMAGES[0])
    expected = engine.classify([right], never)

    with pytest.raises(CoreError, match=r"transformers: ValueError.*32\*48.*32\*32"):
        engine.classify([wrong], never)
    found = engine.classify([right, right], never)

    np.testing.assert_allclose(found, [expected[0]] * 2, atol=1e-5)


def test_an_image_that_is_not_resized_may_have_fewer_pixels(made, engine):
    vit(made)
    large = png_header(2_001, 2_000)
    resizing = engine(made)
    changed(made, "preprocessor_config.json", do_resize=False)
    message = (
        "image 0 has 2,001 x 2,000 pixels, from 1 to 4,000,000 are allowed.*'max_megapixels'; the image "
        "processor of this model does not resize images"
    )

    with pytest.raises(CoreError, match="image 0 is no PNG, JPEG or WebP file, or a damaged one"):
        resizing.classify([large], never)
    with pytest.raises(CoreError, match=message) as no:
        engine(made).classify([large], never)
    with pytest.raises(CoreError, match="image 0 is no PNG, JPEG or WebP file, or a damaged one"):
        engine(made, max_megapixels="5").classify([large], never)

    assert no.value.kind is Kind.INVALID


def test_images_that_are_cut_to_a_size_may_have_as_many_pixels_as_resized_ones(made, engine):
    vit(made)
    size = {"height": 32, "width": 32}
    transformers.CLIPImageProcessorPil(do_resize=False, crop_size=size).save_pretrained(made)

    found = engine(made).classify([file_of(drawn(2_001, 2_000))], never)

    assert found.shape == (1, 3)


def test_large_images_are_computed_one_by_one(made, engine):
    resnet(made)
    changed(made, "preprocessor_config.json", do_resize=False, crop_pct=None)
    engine = engine(made, max_megapixels="1")
    large, small = file_of(drawn(900, 600)), file_of(IMAGES[3])
    expected = [engine.classify([each], never)[0] for each in (large, small)]
    sizes = []
    engine._module.register_forward_pre_hook(
        lambda module, args, given: sizes.append(given["pixel_values"].shape[0]), with_kwargs=True
    )

    found = engine.classify([large] * 5 + [small] * 5, never)

    np.testing.assert_allclose(found, [expected[0]] * 5 + [expected[1]] * 5, atol=1e-5)
    assert max(sizes) <= 5
    assert sizes.count(1) >= 5


def test_a_cancelled_request_ends_before_its_next_image(made, engine):
    vit(made)
    engine = engine(made)
    asked = iter([False, False, True])

    with pytest.raises(CoreError) as ended:
        engine.classify([file_of(IMAGES[0])] * 4, lambda: next(asked))

    assert ended.value.kind is Kind.CANCELLED


def test_memory_is_that_of_the_weights(made, engine):
    vit(made)

    assert abs(engine(made).bytes - (made / "model.safetensors").stat().st_size) < 20_000


# refusals ---------------------------------------------------------------------


def png_header(width, height):
    """Return a PNG file that says its size, and has no pixels."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    )


def webp_header(width, height):
    """Return an extended WebP file that says its size, and has no pixels."""
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<IB3x", 10, 0) + sides


SCAN = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"  # the head of a scan


def jpeg(behind=b"", before=b"", **more):
    """Return a JPEG file with bytes before its first segment, and others behind its first scan."""
    file = file_of(IMAGES[0], "JPEG", **more)
    return file[:2] + before + file[2:-2] + behind + b"\xff\xd9"


@pytest.mark.parametrize(
    "file",
    [
        jpeg() + b"\0\0\0\x18ftypmp42" + SCAN * 200,
        jpeg() + jpeg(progressive=True) * 60,
        jpeg(before=b"\xff\xe1" + struct.pack(">H", 2 + len(SCAN * 200)) + SCAN * 200),
        jpeg(before=b"\xff\xe1" + struct.pack(">H", 2 + len(jpeg())) + jpeg(), progressive=True),
    ],
    ids=["a video follows", "images follow", "scans in a segment", "a preview in a segment"],
)
def test_scans_outside_of_the_image_do_not_count(file):
    found = read_image(file, 10**6)

    assert found.size == IMAGES[0].size


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (png_header(50_000, 50_000), "has 50,000 x 50,000 pixels, from 1 to 1,000,000 are allowed"),
        (webp_header(16_000, 16_000), "has 16,000 x 16,000 pixels"),
        (png_header(0, 5), "has 0 x 5 pixels"),
        (png_header(9_000, 9), "at most 20 times the pixels of the shorter side"),
        (file_of(drawn(1_001, 1_000)), "has 1,001 x 1,000 pixels.*'max_megapixels'"),
        (jpeg(behind=SCAN * 200), "is a JPEG file of 101 scans or more, at most 100 are allowed"),
        (jpeg(behind=b"\xff\x02\xff\xff" + SCAN * 200), "is a JPEG file of 101 scans or more"),
        (jpeg(behind=b"\xff\xfe\x00\x02" * 10_000), "is a JPEG file of 10,000 segments or more"),
        (file_of(IMAGES[0])[:-40], "is a damaged PNG file"),
        (file_of(IMAGES[3], "JPEG")[:-200], "is a damaged JPEG file: image file is truncated"),
        (file_of(IMAGES[0])[:18], "has a header that is cut off"),
        (file_of(IMAGES[0], "GIF"), "is no PNG, JPEG or WebP file"),
        (b"no image", "is no PNG, JPEG or WebP file: its 8 bytes begin with 6e 6f 20"),
        (b"", "is no PNG, JPEG or WebP file: its 0 bytes begin with nothing"),
    ],
)
def test_a_file_that_is_no_image_within_the_bounds_is_refused(file, message):
    with pytest.raises(UnreadableImage, match=message):
        read_image(file, 1_000_000)


def test_an_image_that_is_refused_is_named_by_its_number(made, engine):
    vit(made)
    engine = engine(made, max_megapixels="2")

    with pytest.raises(
        CoreError, match="image 2 has 2,000 x 1,001 pixels, from 1 to 2,000,000"
    ) as no:
        engine.classify([file_of(IMAGES[0])] * 2 + [png_header(2_000, 1_001)], never)
    with pytest.raises(CoreError, match="'image' has 1025 images, at most 1024 are allowed"):
        engine.classify([b""] * 1025, never)

    assert no.value.kind is Kind.INVALID


def test_a_folder_without_an_image_processor_is_refused(made):
    vit(made)
    (made / "preprocessor_config.json").unlink()

    with pytest.raises(CoreError, match=r"unable to find '.*/preprocessor_config.json'"):
        Folder(made, "m")


def test_a_model_of_images_has_no_other_task(made):
    vit(made)

    assert settings_of(config_of(), Folder(made, "m")).task == "classify"
    with pytest.raises(
        CoreError, match="the folder has ViTForImageClassification, which classifies"
    ):
        settings_of(config_of(task="embed"), Folder(made, "m"))
    with pytest.raises(
        CoreError, match="'max_megapixels' is '90', it must be a number from 1 to 89"
    ):
        settings_of(config_of(max_megapixels="90"), Folder(made, "m"))


def test_a_model_with_a_teacher_classifies_images(made, engine):
    torch.manual_seed(5)
    config = transformers.DeiTConfig(
        image_size=32, patch_size=8, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
        num_attention_heads=4, num_labels=3,
    )  # fmt: skip
    transformers.DeiTForImageClassificationWithTeacher(config).save_pretrained(made)
    transformers.ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(made)
    (expected,) = pipeline_of(made, IMAGES[:1])

    found = engine(made).classify([file_of(IMAGES[0])], never)

    np.testing.assert_allclose(
        np.sort(found[0])[::-1], [each["score"] for each in expected], atol=1e-5
    )
