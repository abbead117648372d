"""What only Linux has is used in few files, each with a form for other systems (docs/operate/portable.md)."""

import re
import shutil
import subprocess

import pytest

from tests.shape.sources import ROOT

# Names of calls, files and constants that only Linux has. A comment may have them, too.
LINUX = re.compile(
    r"os\.(?:memfd_create|eventfd|pidfd_open|sched_[sg]etaffinity|posix_fallocate|O_TMPFILE|O_PATH)"
    r"|signal\.pidfd_send_signal|select\.epoll|MADV_REMOVE|fcntl\.F_ADD_SEALS|SOCK_CLOEXEC"
    r"|SOCK_SEQPACKET|SO_PEERCRED|MSG_CMSG_CLOEXEC|socket\.TCP_USER_TIMEOUT|socket\.SO_REUSEPORT"
    r"|[\"'(]/proc\b|[\"'(]/sys/|[\"'(]/dev/shm"
    r"|sys/eventfd\.h|sys/timerfd\.h|sys/epoll\.h|linux/\w+\.h|semaphore\.h|CLOCK_\w+_COARSE|prctl"
)
# Where they may be, and what other systems do instead.
ALLOWED = {
    "core/system/platform.py": "has both forms",
    "core/native/system/clock.h": "has both forms",
    "core/native/system/timer.h": "has both forms",
    "core/native/system/wake.h": "has both forms",
    "backends/python/backend_python/system.py": "has both forms; children import nothing of core",
    "clients/python/core_client/segment.py": "has both forms; a client imports nothing of core",
    "clients/python/core_client/registration.py": "for --shared-memory-socket",
    "frontends/memory/options.py": "refuses --shared-memory-socket in the portable form",
    "frontends/memory/frontend.py": "for --shared-memory-socket",
    "frontends/memory/connection.py": "for --shared-memory-socket",
    "frontends/shared/memory/lent_regions.py": "for --shared-memory-socket and several workers",
    "frontends/shared/system_memory.py": "has both forms",
    "frontends/shared/connection_limit.py": "no limit in the portable form",
    "frontends/grpc/engine_native.py": "--reuse-grpc-port: macOS has it, too",
    "backends/vllm/backend_vllm/orphans.py": "vLLM runs on Linux only",
    "plugins/memory_budget/core_memory_budget/measure.py": "measures nothing without the files of Linux",
    "plugins/bench/core_bench/measure/cpu.py": "finds no processes without the files of Linux",
    "plugins/bench/core_bench/native/connection.hpp": "core bench runs on Linux only",
    "plugins/bench/core_bench/native/loop.hpp": "core bench runs on Linux only",
    "plugins/bench/core_bench/wire/regions.py": "core bench runs on Linux only",
    "plugins/router/benchmarks/compare.py": "measures on Linux only",
    "plugins/ray/benchmarks/figures.py": "measures on Linux only",
    "plugins/console/benchmarks/open_page.py": "measures on Linux only",
    "plugins/tune/core_tune/command.py": "core tune runs on Linux only",
    "plugins/workers/core_workers/ports.py": "the supervisor listens in the portable form",
    "plugins/testing/core_testing/leftovers.py": "finds nothing without the files of Linux",
}


def sources():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        parts = name.split("/")
        if "tests" in parts or parts[0] not in (
            "core",
            "frontends",
            "backends",
            "plugins",
            "clients",
        ):
            continue
        if (
            name.endswith((".py", ".pyx", ".pxd", ".h", ".hpp", ".cpp", ".cc"))
            and (ROOT / name).exists()
        ):
            yield name


def test_what_only_linux_has_is_in_these_files_only():
    found = {name for name in sources() if LINUX.search((ROOT / name).read_text())}

    assert found == set(ALLOWED)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("header", ["clock", "timer", "wake"])
@pytest.mark.parametrize("form", [[], ["-DCORE_PORTABLE"], ["-U__linux__"]], ids=str)
def test_each_form_of_a_header_compiles_without_a_warning(header, form, tmp_path):
    source = tmp_path / "each.c"
    source.write_text(f'#include "{ROOT}/core/native/system/{header}.h"\n')
    warnings = ["-Wall", "-Wextra", "-Wno-unused-function"]

    # -H writes the names of all headers to standard error.
    done = subprocess.run(
        ["cc", "-std=gnu11", *warnings, *form, "-H", "-fsyntax-only", source],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "warning" not in done.stderr
    of_linux = re.findall(r"(?:eventfd|timerfd|semaphore)\.h", done.stderr)
    assert bool(of_linux) == (not form and header != "clock")
