"""python -m core.options: docs/options.md on the standard output."""

from core.options.page import page

print(page(), end="")
