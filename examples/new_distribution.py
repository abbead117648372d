"""Make a backend or a plugin to start from: python examples/new_distribution.py KIND NAME FOLDER

Copies backends/_template or plugins/_template to FOLDER/NAME under the new name. `make new-backend NAME=x`
and `make new-plugin NAME=x` also install it; then change its code and run its tests.
docs/write/write-a-backend.md and docs/write/plugins.md go on from there.
"""

import re
import sys
from pathlib import Path

import core
from core import plugins

ROOT = Path(__file__).parents[1]
INSTALLED = {"backend": plugins.available_backends, "plugin": plugins.with_hooks}
LONGEST = 40
_COPIED = (".py", ".toml", ".md", ".typed")


def new_distribution(kind: str, name: str, folder: Path) -> Path:
    """Write FOLDER/name and return its path. Raises SystemExit for a name that is invalid or taken."""
    if re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) is None or len(name) > LONGEST:
        raise SystemExit(
            f"'{name}' cannot be the name of a {kind}: it becomes part of a Python package, so it has "
            f"lower-case letters, digits and single underscores only, begins with a letter, and is no longer "
            f"than {LONGEST}. Try: make new-{kind} NAME=my_{kind}"
        )
    target = folder / name
    if target.exists():
        raise SystemExit(f"{target} is there already")
    taken = INSTALLED[kind]().get(name)
    if taken is not None:
        raise SystemExit(
            f"there is a {kind} named '{name}' already: {taken.distribution} is installed"
        )
    template = ROOT / f"{kind}s" / "_template"
    for source in sorted(path for path in template.rglob("*") if path.suffix in _COPIED):
        path = target / str(source.relative_to(template)).replace("NAME", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text().replace("NAME", name).replace("0.0.0", core.__version__)
        path.write_text(text)
    return target


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in INSTALLED:
        raise SystemExit(__doc__)
    made = new_distribution(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    print(f"made {made}; to test it: . .venv/bin/activate && pytest {made}")
