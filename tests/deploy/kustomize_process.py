"""A real kustomize: `kustomize build`, or the one in kubectl."""

import os
import shutil
import subprocess
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
COMPONENTS = sorted(each.name for each in (FOLDER / "components").iterdir())


def command():
    """Return the command before the folder; None if no kustomize is installed."""
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    return ["kubectl", "kustomize"] if shutil.which("kubectl") else None


def render(folder):
    """Return the objects of a kustomization by kind and name."""
    done = subprocess.run([*command(), str(folder)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = list(yaml.safe_load_all(done.stdout))
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(by_name) == len(found)
    return by_name


def combine(folder, components, **more):
    """Return the objects of the base with components. folder: an empty one, for the kustomization."""
    here = Path(os.path.relpath(FOLDER, folder.resolve()))
    document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [str(here / "base")],
        "components": [str(here / "components" / each) for each in components],
        **more,
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))
    return render(folder)
