"""Archives that torch-model-archiver wrote: the answers are those of TorchServe's own Python code."""

import importlib.util
import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

pytest.importorskip("model_archiver", reason="torch-model-archiver is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
image = pytest.importorskip("PIL.Image", reason="pillow is not installed")

NET = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.AdaptiveAvgPool2d(4)
        self.last = torch.nn.Linear(48, 7)

    def forward(self, x):
        return self.last(self.pool(x).flatten(1))
"""

HANDLER = """
import json
import os

import torch
from ts.torch_handler.base_handler import BaseHandler


class Scorer(BaseHandler):
    def initialize(self, context):
        super().initialize(context)
        folder = context.system_properties["model_dir"]
        with open(os.path.join(folder, "words.json")) as file:
            self.words = json.load(file)

    def preprocess(self, data):
        rows = [row.get("data") or row.get("body") for row in data]
        return torch.tensor([row["x"] for row in rows])

    def postprocess(self, data):
        best = data.argmax(dim=1).tolist()
        return [{"word": self.words[i], "scores": row.tolist()} for i, row in zip(best, data)]
"""

# torchvision for GPUs beside a torch for CPUs cannot load its operators; its transforms need none.
TORCHVISION = """
import importlib.util, os, sys, torch, types
folder = importlib.util.find_spec("torchvision").submodule_search_locations[0]
try:
    torch.ops.load_library(os.path.join(folder, "_C.so"))
except OSError:
    name = "torchvision._meta_registrations"
    sys.modules[name] = types.ModuleType(name)
"""
# Runs TorchServe's own code, which needs no Java: rows of a request in, answers out.
TORCHSERVE = f"""{TORCHVISION}
import json, os, sys
folder, handler, content = sys.argv[1:]
os.chdir(folder)
sys.path.insert(0, folder)
from ts.model_loader import TsModelLoader
from ts.metrics.metric_cache_yaml_impl import MetricsCacheYamlImpl
import ts
metrics = MetricsCacheYamlImpl(os.path.join(ts.__path__[0], "configs", "metrics.yaml"))
service = TsModelLoader().load("m", folder, handler, None, 4, None, True, metrics)
from ts.context import RequestProcessor
rows = json.load(sys.stdin)
data = [dict(body=bytearray.fromhex(row) if content == "bytes" else row) for row in rows]
service.context.request_processor = [RequestProcessor(dict()) for _ in data]
service.context.request_ids = dict((i, str(i)) for i in range(len(data)))
print("ANSWER" + json.dumps(service._entry_point(data, service.context)))
"""


def needed(*modules):
    """Skip the test unless these modules, which TorchServe's code imports, are installed."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"'{name}' is not installed, which TorchServe's handlers import")


def archived(tmp_path, name, *options, files=(), extension=".mar"):
    """Write an archive by the program torch-model-archiver, and return its path."""
    command = [sys.executable, "-m", "model_archiver.model_packaging"]
    program = os.path.join(os.path.dirname(sys.executable), "torch-model-archiver")
    command = [program] if os.path.exists(program) else command
    more = ["--extra-files", ",".join(map(str, files))] if files else []
    common = ["--model-name", name, "--version", "1.0", "--export-path", str(tmp_path), "--force"]
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(work)}
    subprocess.run([*command, *common, *map(str, options), *more], check=True, env=environment)
    return tmp_path / f"{name}{extension}"


def of_torchserve(archive, handler, content, rows):
    """Return what TorchServe answers."""
    needed("ts")
    folder = archive.parent / "unpacked"
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
    ended = subprocess.run(
        [sys.executable, "-c", TORCHSERVE, str(folder), handler, content],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
    )
    answers = [line for line in ended.stdout.splitlines() if line.startswith("ANSWER")]
    assert answers, ended.stderr[-2000:]
    return json.loads(answers[0].removeprefix("ANSWER"))


@pytest.fixture
def net(tmp_path):
    """Write net.py with a module, its weights net.pth, and net.pt with its TorchScript. Return the module."""
    (tmp_path / "net.py").write_text(NET)
    namespace = {"__name__": "net"}
    exec(NET, namespace)
    torch.manual_seed(0)
    module = namespace["Net"]().eval()
    torch.save(module.state_dict(), tmp_path / "net.pth")
    torch.jit.save(torch.jit.trace(module, torch.ones(1, 3, 8, 8)), tmp_path / "net.pt")
    return module


def picture(seed, size=(300, 260)):
    """A PNG of noise, as bytes."""
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), np.uint8)
    buffer = io.BytesIO()
    image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("mode", ["eager", "script"])
def test_image_classifier_answers_as_torchserve(tmp_path, net, imported, served, mode):
    names = tmp_path / "index_to_name.json"
    names.write_text(json.dumps({str(i): f"class {i}" for i in range(7)}))
    if mode == "eager":
        options = ["--model-file", tmp_path / "net.py", "--serialized-file", tmp_path / "net.pth"]
    else:
        options = ["--serialized-file", tmp_path / "net.pt"]
    archive = archived(
        tmp_path, "pictures", *options, "--handler", "image_classifier", files=[names]
    )
    pictures = [picture(0), picture(1, (224, 500))]

    report = imported(archive)

    assert "needs    torch" in report
    assert "needs    pillow" in report
    server = served("pictures")
    answers = [
        json.loads(server.ask({"data": np.array([each], object)}, name="pictures")["output"][0])
        for each in pictures
    ]
    needed("torchvision", "captum")
    rows = [each.hex() for each in pictures]
    expected = of_torchserve(archive, "image_classifier", "bytes", rows)
    for answer, wanted in zip(answers, expected, strict=True):
        assert answer.keys() == wanted.keys()
        assert list(answer.values()) == pytest.approx(list(wanted.values()), abs=1e-6)


def test_the_compat_transforms_are_those_of_torchvision(tmp_path):
    """The results of both have equal pixels, for sizes that round up and down."""
    needed("torchvision")
    folder = os.path.join(os.path.dirname(__import__("core_importers").__file__), "adapters/compat")
    code = f"""{TORCHVISION}
import sys
sys.path.insert(0, sys.argv[1])
from ts.torch_handler.vision_handler import prepare
from PIL import Image
from torchvision import transforms as T
whole = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(),
    T.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])])
for size in ((300, 260), (257, 401), (256, 256), (1000, 333), (225, 1001), (100, 100)):
    image = Image.effect_noise(size, 80).convert("RGB")
    assert torch.equal(prepare(image), whole(image)), size
"""
    subprocess.run([sys.executable, "-c", code, folder], check=True)


def test_a_handler_with_json_extra_files_and_batches(tmp_path, imported, served):
    (tmp_path / "scorer.py").write_text(HANDLER)
    (tmp_path / "words.json").write_text(json.dumps(["no", "maybe", "yes"]))
    (tmp_path / "model-config.yaml").write_text(
        "minWorkers: 1\nmaxWorkers: 2\nbatchSize: 4\nmaxBatchDelay: 50\nresponseTimeout: 60\n"
        "handler:\n  depth: 3\n"
    )
    (tmp_path / "requirements.txt").write_text("torch>=2\n# a comment\nnumpy\n")
    module = torch.jit.script(torch.nn.Linear(2, 3).eval())
    torch.jit.save(module, tmp_path / "linear.pt")
    archive = archived(
        tmp_path,
        "scorer",
        *("--serialized-file", tmp_path / "linear.pt", "--handler", tmp_path / "scorer.py"),
        *("--config-file", tmp_path / "model-config.yaml"),
        *("--requirements-file", tmp_path / "requirements.txt"),
        files=[tmp_path / "words.json"],
    )

    report = imported(archive)
    assert "CONTENT_TYPE" in report
    config = archive.parent / "models/scorer/config.pbtxt"
    config.write_text(
        config.read_text()
        + 'parameters { key: "CONTENT_TYPE" value { string_value: "application/json" } }\n'
    )

    rows = [{"x": [1.0, 2.0]}, {"x": [-3.0, 0.5]}, {"x": [0.0, -1.0]}]
    texts = [np.array([[json.dumps(row).encode()]], object) for row in rows]
    server = served("scorer")
    answers = server.together([{"data": text} for text in texts], name="scorer")
    found = [json.loads(answer["output"][0, 0]) for answer in answers]
    settings = server.config("scorer")
    assert settings.max_batch_size == 4
    assert settings.dynamic_batching.max_queue_delay_microseconds == 50000
    assert settings.parameters["EXECUTE_TIMEOUT_SECONDS"].string_value == "60"
    whole = np.array([[json.dumps(row).encode()] for row in rows], object)
    together = server.ask({"data": whole}, name="scorer")["output"].ravel()
    assert [json.loads(each)["word"] for each in together] == [each["word"] for each in found]
    expected = of_torchserve(archive, "scorer", "json", rows)
    assert [each["word"] for each in found] == [each["word"] for each in expected]
    for each, wanted in zip(found, expected, strict=True):
        assert each["scores"] == pytest.approx(wanted["scores"], rel=1e-6)


def test_the_formats_tgz_and_folder(tmp_path, net, imported, served):
    options = ["--serialized-file", tmp_path / "net.pt", "--handler", "image_classifier"]
    packed = archived(tmp_path, "packed", *options, "--archive-format", "tgz", extension=".tar.gz")
    folder = archived(tmp_path, "folder", *options, "--archive-format", "no-archive", extension="")

    for source, name in ((packed, "packed"), (folder, "folder")):
        imported(source)
        data = np.array([picture(2)], object)
        answer = json.loads(served(name).ask({"data": data}, name=name)["output"][0])
        assert len(answer) == 5
        assert sum(answer.values()) <= 1.0


TEXT = """
import torch


class Text(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(8, 4, mode="mean")
        self.last = torch.nn.Linear(4, 2)

    def forward(self, text, offsets):
        return self.last(self.embedding(text, offsets))
"""


def test_text_classifier_runs_with_torchserve(tmp_path, imported, served, repository):
    needed("ts", "captum")
    (tmp_path / "text.py").write_text(TEXT)
    namespace = {"__name__": "text"}
    exec(TEXT, namespace)
    torch.manual_seed(0)
    torch.save(namespace["Text"]().state_dict(), tmp_path / "text.pth")
    words = ["good", "film", "good film", "film good"]
    torch.save({word: i for i, word in enumerate(words)}, tmp_path / "source_vocab.pt")
    archive = archived(
        tmp_path,
        "reviews",
        *("--model-file", tmp_path / "text.py", "--serialized-file", tmp_path / "text.pth"),
        *("--handler", "text_classifier"),
        files=[tmp_path / "source_vocab.pt"],
    )

    report = imported(archive)

    assert "needs    torchserve" in report
    text = np.array([b"Good film!"], object)
    answer = json.loads(served("reviews").ask({"data": text}, name="reviews")["output"][0])
    (expected,) = of_torchserve(archive, "text_classifier", "text", ["Good film!"])
    assert answer == pytest.approx(expected, rel=1e-6)
