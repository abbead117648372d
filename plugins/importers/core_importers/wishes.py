"""Wishes: the options of an import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wishes:
    """The options of `core import`.

    name          of the model; "" for the name in the source
    force         replace a model of that name
    trusted       the configuration allows the server to read pickles
    environment   the server installs the requirements for the model
    extras        files and folders that are copied beside a Python source
    inputs        such as "x:FP32[-1,4]": replace the inputs in the source of the same name, and add others
    outputs       likewise
    """

    name: str = ""
    force: bool = False
    trusted: bool = False
    environment: bool = False
    extras: Sequence[Path] = ()
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
