"""Give scikit-build-core the README of an index, where no other file of the repository is beside it.

Relative links become links below the URL `Source` of pyproject.toml.
"""

import re
from pathlib import Path

_RELATIVE = re.compile(r"""(\]\(|src="|href=")(?!\w+:|#)""")


def dynamic_metadata(settings, project):
    """Return the field `readme`. `settings` is empty."""
    base = project["urls"]["Source"]
    text = _RELATIVE.sub(lambda found: f"{found[1]}{base}/", Path("README.md").read_text("utf-8"))
    return {"readme": {"content-type": "text/markdown", "text": text}}
