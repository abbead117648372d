"""Ask a real server what the README asks, and hold its answers against the README's.

    python .ci/smoke.py README.md                   # installs and serves by the README's own commands
    python .ci/smoke.py README.md MODELS COMMAND…   # starts COMMAND with --model-repository=MODELS instead

Takes the `$` lines of the README's console blocks. The first form runs them in the folder of the README, with
the programs on PATH: what installs, then the server. Both start the server on free ports, send each `$ curl`
request, and end the server with SIGTERM. They fail if an answer differs, if the exit status is not 0, or if a
process or a file is left behind. They need nothing but Python.

MODELS may be "", for a COMMAND that installs the server and knows its models, as `make serve` does. The
server may be COMMAND itself or one of its descendants.
"""

import json
import math
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

READY_S = 120.0
SET_UP_S = 1200.0  # for a COMMAND that installs everything first
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(readme):
    """(words of a command, text that follows it) for each `$` line of the README."""
    for block in BLOCK.findall(readme.read_text()):
        for exchange in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            # A command goes on where its line ends with a backslash.
            command, _, answer = re.sub(r"\\\n\s*", "", exchange).partition("\n")
            yield shlex.split(command, comments=True), answer


def exchanges(readme):
    """(path on the server, body or None, expected text) of each request in the README."""
    for words, answer in commands(readme):
        if words[0] != "curl":
            continue
        url = next(word for word in words if word.startswith("localhost:8000/"))
        body = words[words.index("-d") + 1].encode() if "-d" in words else None
        if body is not None and body.startswith(b"@"):
            body = (readme.parent / body[1:].decode()).read_bytes()
        yield url.removeprefix("localhost:8000"), body, answer


def install(readme):
    """Run the README's commands up to the one that serves. Return that one."""
    for words, _ in commands(readme):
        if words[:2] == ["core", "serve"]:
            return words
        print("$", shlex.join(words), flush=True)
        subprocess.run(words, cwd=readme.parent, check=True)
    raise SystemExit(f"{readme} serves nothing")


CLASS = re.compile(r"(?P<score>[\d.]+):(?P<index>\d+)(:.*)?")


def same(found, expected):
    """Whether two JSON values are equal, floats to two digits: other machines train other weights."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            same(found[k], expected[k]) for k in expected
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-2)
    if isinstance(expected, str) and (best := CLASS.fullmatch(expected)):
        also = CLASS.fullmatch(found)
        score, rest = float(best["score"]), expected.partition(":")[2]
        return also and found.endswith(rest) and same(float(also["score"]), score)
    return found == expected


def free_ports(count):
    """Ports that nothing listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_until_ready(process, base, timeout_s):
    """Wait until the server says that it is ready."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"the server ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"{base}/v2/health/ready", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"the server was not ready after {timeout_s:.0f} s")


def server_of(process):
    """Return the id of the server that `process` is, or that it has started."""
    waiting = [process.pid]
    while waiting:
        pid = waiting.pop(0)
        if b"core-serve" in b" ".join(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:2]):
            return pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        waiting += [int(child) for child in children.split()]
    return process.pid


def ask(base, path, body):
    """The text that the server answers."""
    request = urllib.request.Request(base + path, data=body)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{path}: {error.code} {error.read().decode()}") from error


def check_answers(base, readme):
    """Send the README's requests; the number of those that were answered as it says."""
    count = 0
    for path, body, expected in exchanges(readme):
        found = ask(base, path, body)
        if not same(json.loads(found), json.loads(expected)):
            raise SystemExit(f"{path}: the README says\n{expected}\nthe server says\n{found}")
        count += 1
    if not count:
        raise SystemExit(f"{readme} asks nothing")
    return count


def left_behind(process, folder, before):
    """What the server should have taken with it: processes, files, shared memory."""
    try:
        os.killpg(process.pid, 0)
        yield f"a process of group {process.pid}"
    except ProcessLookupError:
        pass
    yield from (str(path) for path in folder.rglob("*") if path.name != "server.log")
    yield from (f"/dev/shm/{name}" for name in shared_memory() - before if name.startswith("core"))


def shared_memory():
    """Names of all shared memory of the machine."""
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def main(readme, models="", *command):
    readme = Path(readme).resolve()
    in_readme = not command
    if in_readme:
        command = install(readme)
    before = shared_memory()
    http, grpc, metrics = free_ports(3)
    with tempfile.TemporaryDirectory(prefix="smoke-") as name:
        folder = Path(name)
        with open(folder / "server.log", "wb") as log:
            process = subprocess.Popen(
                [
                    *command,
                    *([f"--model-repository={Path(models).resolve()}"] if models else []),
                    f"--http-port={http}",
                    f"--grpc-port={grpc}",
                    f"--metrics-port={metrics}",
                ],
                cwd=readme.parent if in_readme else folder,
                env={**os.environ, "TMPDIR": name},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            patience = READY_S if models or in_readme else SET_UP_S
            wait_until_ready(process, f"http://127.0.0.1:{http}", patience)
            count = check_answers(f"http://127.0.0.1:{http}", readme)
            os.kill(server_of(process), signal.SIGTERM)
            status = process.wait(60)
            left = list(left_behind(process, folder, before))
            if status or left:
                raise SystemExit(f"exit status {status}, left behind: {left or 'nothing'}")
        except BaseException:
            print((folder / "server.log").read_text(errors="replace"), file=sys.stderr)
            raise
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    print(f"{count} requests answered as the README says; the server left nothing behind")


if __name__ == "__main__":
    main(*sys.argv[1:])
