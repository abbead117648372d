"""The image that docs/operate/kserve.md builds: it holds what the runtimes of KServe promise."""

import re

from tests.deploy.kserve_sdk.objects import ROOT

PAGE = (ROOT / "docs" / "operate" / "kserve.md").read_text()
ADAPTERS = ROOT / "plugins" / "adapters" / "core_adapters"
NOT_A_FORMAT = {"mlserver"}  # the library of MLServer's folders, which no format is for
DISTRIBUTIONS = {"xgboost": "xgboost-cpu"}  # the same module, without gigabytes of CUDA


def built():
    """Return name → words of the arguments of the page's first `docker build`."""
    command, *_ = re.findall(r"^docker build -f deploy/docker/Dockerfile.*?\.$", PAGE, re.M | re.S)
    return {name: set(words.split()) for name, words in re.findall(r'([A-Z]+)="([^"]*)"', command)}


def test_the_image_has_each_library_that_a_format_of_adapters_imports():
    sources = "".join(path.read_text() for path in ADAPTERS.glob("*.py"))
    named = set(re.findall(r'\bneeded\("[\w.]+", "([\w-]+)"', sources)) - NOT_A_FORMAT

    assert {"scikit-learn", "xgboost", "lightgbm", "skops"} <= named
    assert built()["PACKAGES"] == {DISTRIBUTIONS.get(each, each) for each in named}
