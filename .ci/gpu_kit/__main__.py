"""Make a folder that tests and measures this checkout on a machine with a GPU and without network.

    python .ci/gpu_kit [FOLDER] [--has FILE] [--limit-mib 60] [--keep-wheels]

Runs in an environment that .ci/install made, of the Python of that machine; `make gpu-kit` makes it. The
folder has wheels of core and the distributions whose tests or benchmarks need a GPU, wheels of libraries
that the machine lacks, the tests themselves, and the program `run`. contents.py says which; needs.py finds
the libraries.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import contents
import needs

HERE = Path(__file__).parent
MIB = 1 << 20
CARRIED = {
    "run": "run.py",
    "gpu_kit_recorder.py": "gpu_kit_recorder.py",
    "gpu_kit_results.py": "gpu_kit_results.py",
}
# Native code that gets addresses on a GPU from others: handles of other processes, DLPack, the driver.
SANITIZED = (
    "tests/integration/memory/test_gpu.py",
    "tests/flow/in_process/test_device.py",
    "plugins/gpu/tests/test_real_gpu.py",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="gpu_kit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/gpu-kit"))
    parser.add_argument(
        "--has", type=Path, help="packages of that machine, as `pip list` or `pip freeze` has them"
    )
    parser.add_argument("--limit-mib", type=float, default=60.0, help="largest size (%(default)s)")
    parser.add_argument(
        "--keep-wheels", action="store_true", help="those of an earlier run are not made again"
    )
    chosen = parser.parse_args()
    folder = chosen.folder.resolve()
    if not chosen.keep_wheels:
        shutil.rmtree(folder, ignore_errors=True)
        build(folder / "wheels")
    shutil.rmtree(folder / "needs", ignore_errors=True)
    (folder / "needs").mkdir(parents=True)
    has = needs.installed(chosen.has.read_text()) if chosen.has else {}
    found = libraries(folder, has)
    contents.archive(folder / "checkout.tar.gz")
    for name, carried in CARRIED.items():
        shutil.copy(HERE / "carried" / carried, folder / name)
    (folder / "run").chmod(0o755)
    (folder / "kit.json").write_text(json.dumps(described(found), indent=1))
    sizes = {name: size_of(folder / name) for name in ("wheels", "needs", "checkout.tar.gz")}
    print("\n".join(report(folder, sizes, found)))
    if problem := too_large(sizes, chosen.limit_mib):
        sys.exit(problem)


def build(folder: Path) -> None:
    """Make the wheels, compiled as they are released."""
    command = [contents.ROOT / ".ci" / "wheels", Path(sys.executable).parent, "wheels", folder]
    subprocess.run([*map(str, command), *contents.distributions()], cwd=contents.ROOT, check=True)


def libraries(folder: Path, has: Mapping[str, str]) -> needs.Needs:
    """Download what the machine lacks into the folder `needs`."""
    wheels = sorted((folder / "wheels").glob("*.whl"))
    wanted = [(each, "tests and benchmarks") for each in contents.LIBRARIES]
    for wheel in wheels:
        # An extra of a distribution is no requirement.
        wanted += [(each, needs.name_of(wheel)) for each in needs.requirements(wheel)]
    own = [needs.name_of(each) for each in wheels]
    return needs.walk(wanted, has, own, lambda each: needs.downloaded(each, folder / "needs"))


def described(found: needs.Needs) -> dict[str, object]:
    """Return what the program `run` reads."""
    return {
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "commit": contents.commit(),
        "groups": contents.test_files(),
        "frameworks": contents.FRAMEWORKS,
        "imports": contents.IMPORTS,
        "sanitized": SANITIZED,
        "absent": found.absent,
    }


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files if each.is_file())


def report(folder: Path, sizes: Mapping[str, int], found: needs.Needs) -> list[str]:
    """Return the lines that say what a kit holds, and what is neither there nor carried."""
    lines = [f"{size / MIB:7.1f} MiB  {name}" for name, size in sizes.items()]
    wheels = sorted(folder.glob("*/*.whl"), key=size_of, reverse=True)
    lines += [
        f"{size_of(each) / MIB:11.1f} MiB  {each.parent.name}/{each.name}" for each in wheels[:8]
    ]
    lines += [
        f"neither there nor carried: {each}, of {asker}" for each, asker in found.absent.items()
    ]
    return [*lines, f"{sum(sizes.values()) / MIB:7.1f} MiB  {folder}"]


def too_large(sizes: Mapping[str, int], limit_mib: float) -> str:
    """Return the message about a kit that is too large; "" if it is not."""
    total = sum(sizes.values()) / MIB
    if total <= limit_mib:
        return ""
    largest = max(sizes, key=lambda each: sizes[each])
    advice = "--has FILE leaves out what is there, --limit-mib allows more"
    found = f"the kit has {total:.1f} MiB, and --limit-mib is {limit_mib:g}"
    return f"{found}; the largest part is {largest}: {advice}"


if __name__ == "__main__":
    main()
