"""Make a backend to start from: python examples/new_backend.py NAME FOLDER

Copies backends/_template to FOLDER/NAME under the new name. `make new-backend NAME=x` also installs it;
then change `execute` and run `pytest backends/x`. docs/write-a-backend.md goes on from there.
"""

import re
import sys
from pathlib import Path

import core
from core import plugins

TEMPLATE = Path(__file__).parents[1] / "backends" / "_template"
LONGEST = 40
_COPIED = (".py", ".toml", ".md", ".typed")


def new_backend(name: str, folder: Path) -> Path:
    """Write FOLDER/name; its path. Raises SystemExit for a name that cannot be or is taken."""
    if re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) is None or len(name) > LONGEST:
        raise SystemExit(
            f"'{name}' cannot be the name of a backend: it becomes part of a Python package, so it has "
            f"lower-case letters, digits and single underscores only, begins with a letter, and is no longer "
            f"than {LONGEST}. Try: make new-backend NAME=lightgbm"
        )
    target = folder / name
    if target.exists():
        raise SystemExit(f"{target} is there already")
    taken = plugins.available_backends().get(name)
    if taken is not None:
        raise SystemExit(
            f"there is a backend named '{name}' already: {taken.distribution} is installed"
        )
    for source in sorted(path for path in TEMPLATE.rglob("*") if path.suffix in _COPIED):
        path = target / str(source.relative_to(TEMPLATE)).replace("NAME", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text().replace("NAME", name).replace("0.0.0", core.__version__)
        path.write_text(text)
    return target


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(f"made {new_backend(sys.argv[1], Path(sys.argv[2]))}")
