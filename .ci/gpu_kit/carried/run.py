#!/usr/bin/env python3
"""Run this kit on a machine with a GPU and without network.

    ./run tests        the tests of the mark gpu: tests.jsonl, tests.log and the page tests.html
    ./run benchmarks   python -m benchmarks.gpu: results.json, benchmarks.log and the page index.html
    ./run sanitizer    a few tests of native code under compute-sanitizer, memcheck: sanitizer.log

The wheels of this folder are installed into the folder of --work, which $PYTHONPATH names: packages of the
machine are not changed. Results are written while work goes on, so a run that is killed leaves what it found.
Arguments behind `--` are those of pytest, or of the benchmark.

Exit status: 0; 1 if a test or section failed, or nothing could run; 2 if this kit does not fit this machine.
"""

import argparse
import ctypes
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import gpu_kit_results as results  # noqa: E402

KIT = json.loads((HERE / "kit.json").read_text()) if (HERE / "kit.json").exists() else {}
GRACE_S = 5.0
SHORTEST_S = 60.0
PR_SET_PDEATHSIG = 1
FACTS = """
import importlib, importlib.metadata, json, sys
import core
from core.devices.visible import gpus
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"
found = {"Python": sys.version.split()[0], "core": version("core"), "GPUs": len(gpus())}
found |= {name: version(name) for name in sys.argv[1].split()}
broken = []
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        broken.append(f"{name}: {type(error).__name__}: {error}"[:200])
print(json.dumps([found, broken]))
"""


class Unfit(Exception):
    """This kit cannot run on this machine; the text says why."""


def check_python(python, version=sys.version_info):
    """Raise Unfit if the kit is for another Python."""
    ours = f"{version[0]}.{version[1]}"
    if python != ours:
        raise Unfit(
            f"the wheels of this kit are for Python {python}, and this is {ours}: "
            f"make gpu-kit PYTHON=python{ours}"
        )


def identity(folder):
    """Return a text that differs for kits that differ."""
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            found.update(f"{file.name} {file.stat().st_size} ".encode())
    for name in ("kit.json", "checkout.tar.gz"):
        found.update((folder / name).read_bytes())
    return found.hexdigest()[:12]


def install(work):
    """Install the wheels and unpack the checkout below `work`, unless that is done; return both folders."""
    site, checkout, done = work / "site", work / "checkout", work / "installed"
    if not done.exists():
        shutil.rmtree(work, ignore_errors=True)
        checkout.mkdir(parents=True)
        begin = time.monotonic()
        wheels = sorted(map(str, [*HERE.glob("wheels/*.whl"), *HERE.glob("needs/*.whl")]))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += [
            "--no-index",
            "--no-deps",
            "--no-compile",
            "--no-cache-dir",
            "--target",
            str(site),
        ]
        # What a user's configuration adds, such as folders of wheels, is not part of the kit.
        environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
        if subprocess.run(command + wheels, env=environment).returncode:
            raise Unfit("pip did not install the wheels: see above")
        with tarfile.open(HERE / "checkout.tar.gz") as archive:
            archive.extractall(checkout, filter="data")
        done.touch()
        print(
            f"installed {len(wheels)} wheels in {site} in {time.monotonic() - begin:.1f} s",
            flush=True,
        )
    return site, checkout


def environment_of(site, checkout):
    """Return the variables of all that runs."""
    path = [str(site), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    found = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONUNBUFFERED": "1",
        "PWD": str(checkout),
    }
    found["PATH"] = os.pathsep.join([str(site / "bin"), os.environ.get("PATH", os.defpath)])
    found["HF_HUB_OFFLINE"] = "1"
    # Images of Python often set it. Every process would compile all that it imports.
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    # JAX would take three quarters of the GPU, beside tests that watch its memory.
    found.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    return found


def begin():
    """Give a new process a group, so that servers of tests end with it; end it if this one is killed."""
    os.setpgrp()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Runner:
    """Runs commands in the checkout until the time is over."""

    def __init__(self, checkout, environment, seconds):
        self.checkout, self.environment = checkout, environment
        self._end = time.monotonic() + seconds
        self._process = None
        signal.signal(signal.SIGTERM, self._ended)

    def left(self):
        return self._end - time.monotonic()

    def run(self, command, log, share=1.0, **variables):
        """Run a command with its output in an open file; return its status, None if time ended it.

        share   of the time that is left, but at least SHORTEST_S
        """
        seconds = min(self.left(), max(share * self.left(), SHORTEST_S))
        if seconds <= 0:
            return None
        environment = {**self.environment, **variables}
        self._process = subprocess.Popen(
            command,
            cwd=self.checkout,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=begin,
        )
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._kill()

    def _kill(self):
        for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
            try:
                os.killpg(self._process.pid, number)
                self._process.wait(patience)
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue

    def _ended(self, *_):
        if self._process is not None:
            self._kill()
        sys.exit(143)


def machine(runner):
    """Return what the machine has as name → version. Raises Unfit if core does not work here."""
    command = [sys.executable, "-c", FACTS, " ".join(KIT["frameworks"]), *KIT["imports"]]
    done = subprocess.run(
        command, cwd=runner.checkout, env=runner.environment, capture_output=True, text=True
    )
    if done.returncode:
        raise Unfit(f"core of this kit cannot be imported here:\n{done.stderr[-2000:]}")
    found, broken = json.loads(done.stdout.splitlines()[-1])
    for each in broken:
        print(f"this kit lacks something: {each}", flush=True)
    return found


def tests(runner, out, more, facts):
    """Run the groups of tests, each in a process of its own."""
    record = out / "tests.jsonl"
    record.unlink(missing_ok=True)
    with (out / "tests.log").open("w") as log:
        for group, files in KIT["groups"].items():
            begin = time.monotonic()
            command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "gpu_kit_recorder"]
            command += ["-p", "no:cacheprovider", "-o", "timeout=90", *files, *more]
            variables = {"GPU_KIT_RECORD": str(record), "GPU_KIT_GROUP": group}
            status = runner.run(command, log, 0.5, **variables)  # one that hangs leaves time
            log.flush()
            rows = [each for each in results.read(record) if each["group"] == group]
            if status not in (0, 1, 5) or (not rows and status != 5):
                row = stopped(group, status, (out / "tests.log").read_text())
                rows.append(results.judged(row))
                with record.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            shown = results.shown(results.counts(rows)[group])
            print(f"{group:22} {shown}, {time.monotonic() - begin:.0f} s", flush=True)
            (out / "tests.html").write_text(results.page(results.read(record), facts))
    rows = results.read(record)
    print("\n" + "\n".join(results.summary(rows)))
    return int(any(row["outcome"] in results.BAD for row in rows))


def stopped(group, status, log):
    """Return the row of a group whose pytest did not end as usual."""
    if status is None:
        reason = "its time was over"
    else:
        errors = [line for line in log.splitlines() if line.startswith("E  ")]
        reason = (
            errors[-1] if errors and status == 4 else f"pytest ended with {status}: see tests.log"
        )
    outcome = "stopped" if status is None else "error"
    return {"group": group, "test": group, "outcome": outcome, "seconds": 0.0, "reason": reason}


def benchmarks(runner, out, more, facts):
    """Measure; the benchmark itself ends its sections in time."""
    limit = max(runner.left() - 2 * GRACE_S, 1)
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu",
        "--out",
        str(out),
        "--limit",
        f"{limit:.0f}",
        *more,
    ]
    with (out / "benchmarks.log").open("w") as log:
        status = runner.run(command, log)
    lines = (out / "benchmarks.log").read_text().strip().splitlines()
    print("\n".join(line[:200] for line in lines[-40:]))
    return 1 if status is None else min(status, 1)


def sanitizer(runner, out, more, facts):
    """Run a few tests under memcheck."""
    program = shutil.which("compute-sanitizer") or shutil.which(
        "/usr/local/cuda/bin/compute-sanitizer"
    )
    if program is None:
        print("nothing is checked: compute-sanitizer is not installed; CUDA's toolkit has it")
        return 1
    if not facts["GPUs"]:
        print("nothing is checked: this process sees no GPU")
        return 1
    command = [program, "--tool", "memcheck", "--target-processes", "all", "--error-exitcode", "86"]
    # Libraries try calls that this GPU may refuse; that is no error of memory.
    command += ["--report-api-errors", "no"]
    command += [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider"]
    command += ["-o", "timeout=0", *(more or KIT["sanitized"])]
    with (out / "sanitizer.log").open("w") as log:
        status = runner.run(command, log)
    lines = (out / "sanitizer.log").read_text().splitlines()
    print("\n".join(line for line in lines if line.startswith("=========") and "SUMMARY" in line))
    print("\n".join(lines[-5:]))
    if status is None:
        print("its time was over")
    return int(status != 0)


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    work = {"tests": tests, "benchmarks": benchmarks, "sanitizer": sanitizer}
    arguments, _, more = (list(part) for part in split(arguments))
    parser.add_argument("what", choices=sorted(work))
    parser.add_argument(
        "--out", type=Path, default=Path("gpu-results"), help="folder of the results (%(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=540, help="when all ends (%(default)s)")
    parser.add_argument(
        "--work", type=Path, help="folder that gets wheels and checkout; kept for the next run"
    )
    chosen = parser.parse_args(arguments)
    begin = time.monotonic()
    try:
        check_python(KIT["python"])
        usual = Path(tempfile.gettempdir()) / f"gpu-kit-{os.getuid()}-{identity(HERE)}"
        folder = chosen.work or usual
        site, checkout = install(folder.resolve())
        out = chosen.out.resolve()
        out.mkdir(parents=True, exist_ok=True)
        seconds = chosen.seconds - (time.monotonic() - begin)
        runner = Runner(checkout, environment_of(site, checkout), seconds)
        facts = machine(runner)
    except Unfit as error:
        print(error, file=sys.stderr)
        return 2
    print(
        f"commit {KIT['commit']}; " + ", ".join(f"{name} {value}" for name, value in facts.items()),
        flush=True,
    )
    return work[chosen.what](runner, out, more, facts)


def split(arguments):
    """Return the arguments before `--`, the dashes, and those behind."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place : place + 1], arguments[place + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
