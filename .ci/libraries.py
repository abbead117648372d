"""Print what distributions of this checkout need from an index, a line each: .ci/libraries.py FOLDER…

Leaves out what this checkout has itself, and what only an extra needs.
"""

import re
import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip has the same
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).parents[1]


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]


def name_of(requirement):
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


def libraries(folders):
    """Return the requirements of the distributions in `folders`, sorted."""
    found = [
        ROOT,
        *ROOT.glob("backends/[!_]*"),
        *ROOT.glob("plugins/[!_]*"),
        *ROOT.glob("clients/*"),
    ]
    own = {project(each)["name"] for each in found if (each / "pyproject.toml").exists()}
    needed = {each for folder in folders for each in project(folder).get("dependencies", ())}
    return sorted(each for each in needed if name_of(each) not in own)


if __name__ == "__main__":
    print("\n".join(libraries(sys.argv[1:])))
