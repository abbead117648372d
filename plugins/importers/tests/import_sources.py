"""Sources in the format of each tool, written without it."""

import json
import zipfile

HANDLER = """
class Handler:
    def initialize(self, context):
        with open("words.txt") as file:
            self.words = file.read().split()
        self.factor = context.model_yaml_config.get("handler", {}).get("factor", 1)

    def handle(self, rows, context):
        found = []
        for i, row in enumerate(rows):
            number = int(row["body"].decode())
            if number < 0:
                from ts.utils.util import PredictionException
                raise PredictionException("a number below 0", 400)
            unit = context.get_request_header(i, "unit")
            found.append({"word": self.words[number * self.factor], "unit": unit})
        return found
"""


def mar(path, files, model=None, runtime="python", manifest=True):
    """Write an archive as torch-model-archiver does."""
    settings = {
        "modelName": path.stem,
        "handler": "handler.py",
        "modelVersion": "1.0",
        **(model or {}),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        if manifest:
            text = json.dumps({"runtime": runtime, "model": settings, "archiverVersion": "0.12.0"})
            archive.writestr("MAR-INF/MANIFEST.json", text)
    return path


def words(path, **model):
    """Write an archive whose handler needs no library."""
    files = {"handler.py": HANDLER, "words.txt": "zero one two three four"}
    return mar(path, files, model)


def mlmodel(folder, flavors, signature="", files=None):
    """Write a folder as MLflow does."""
    folder.mkdir(parents=True)
    (folder / "MLmodel").write_text(f"flavors:\n{flavors}mlflow_version: 3.1.0\n{signature}")
    for name, content in (files or {}).items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
