"""Run the tests in groups, each in a pytest of its own, side by side: .ci/groups.py FOLDER [PART]

FOLDER   gets the report of each group, group-1.xml …
PART     of the tests; without it all run
         bare        all but those of `installed` that also cover a machine without libnghttp2 and azurite
         installed   those that depend on libnghttp2, redis-server, azurite, or a model or package of .ci/run

One group more than there are processors runs at a time, as tests often wait for processes. The output of a
group appears when it has ended.

If at most five tests fail, they run once more after all groups have ended. A test that then passes is named
at the end: it must be mended, but the status is 0. The status is 1 if a test fails twice, if more than five
fail, or if a group ends in another way.
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]


def files(folder, *names):
    """Return the paths of test files: files("tests", "shape") is ["tests/test_shape.py"]."""
    return [f"{folder}/test_{name}.py" for name in names]


def matching(pattern):
    """Return the paths of the files that a pattern matches."""
    return sorted(str(each.relative_to(ROOT)) for each in ROOT.glob(pattern))


# They run over both engines of gRPC where there are two, and over all kinds of storage that there are.
BOTH_ENGINES = [
    *("tests/unit/grpc", "tests/integration/grpc", "tests/integration/memory", "tests/weaknesses"),
    *files("tests/process", "costly", "hostile", "local_clients", "portable", "workers"),
    "plugins/cloud",
]

# The longest ones first, so that no processor waits for one at the end. A group leaves out what another names
# below its folders. "tests", "clients" and "examples" have the rest, so that no test is forgotten.
EVERYTHING = [
    ["plugins"],
    ["tests", "clients", "examples"],
    ["backends"],
    ["plugins/adapters", "plugins/bench", "plugins/console"],
    ["backends/fil", "backends/openvino_genai", "backends/pytorch"],
    ["plugins/openai", "plugins/testing", "plugins/tune"],
    ["backends/python"],
    ["tests/process"],
    ["tests/flow", "tests/integration"],
    ["tests/unit"],
    ["tests/conformance"],
]

GENAI = "backends/openvino_genai/tests"
ORACLE = "backends/transformers/tests/test_oracle.py"
INSTALLED = [
    [
        "backends/llamacpp",
        *files(
            GENAI, "conformance", "embedding", "engine", "files", "generation", "schema", "speech"
        ),
        *(f"{each}::test_a_gguf_file_is_refused" for each in files(GENAI, "ranking")),
        *files("backends/transformers/tests", "speech"),
        f"{ORACLE}::test_a_real_model_gives_the_tokens_of_transformers",
        *files("backends/litert/tests", "readme", "real_models"),
        *files("backends/tracker/tests", "reference", "settings"),
    ],
    [
        *files("plugins/bench/tests", "page", "protocols", "transports"),
        *matching("plugins/openai/tests/test_client*.py"),
        *files("plugins/openai/tests", "encoders"),
        *files("plugins/router/tests", "grpc", "grpc_failures", "grpc_streams", "scan"),
        *files("tests/examples", "rag"),
        *("examples/notes", "examples/ocr", "examples/speech"),
        *("plugins/cloud", "plugins/redis"),
    ],
    [
        *("tests/weaknesses", "tests/integration/grpc", "tests/integration/contract"),
        *("tests/integration/memory", "tests/unit/grpc", "tests/test_compiled.py"),
        *files("tests/unit", "limits_page"),
        *files("tests/unit/benchmarks", "guard"),
    ],
    files(
        "tests/process",
        *("clients", "costly", "hostile", "killed_workers", "local_clients", "portable"),
        *("security", "slow_clients", "streams", "workers", "workers_end"),
    ),
    ["tests/conformance"],
]


def commands(part):
    """Return the arguments of pytest for each group."""
    if part == "installed":
        return INSTALLED
    named = [*chain(*EVERYTHING), *(BOTH_ENGINES if part == "bare" else ())]
    return [
        [*group, *(f"--ignore={each}" for each in named if is_below(each, group))]
        for group in EVERYTHING
    ]


def is_below(path, folders):
    """Return whether a path lies in one of the folders."""
    return path.startswith(tuple(f"{each}/" for each in folders))


TESTS_FAILED = 1  # of pytest's statuses
# A busy machine fails a test or two. More failures have a cause of their own.
FEW = 5


def pytest(title, arguments, folder, report):
    """Run pytest and print what it has printed; return its status, and the tests that failed."""
    begin = time.monotonic()
    cache = f"{folder}/{report}.cache"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}"),
            # The same examples in every run, and no bound on the time that it takes to generate them.
            *("--hypothesis-profile=ci", f"--junit-xml={folder}/{report}.xml", *arguments),
        ],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    named = " ".join(each for each in arguments if not each.startswith("--"))
    print(
        f"\n-- {title}, {time.monotonic() - begin:.0f} s: {named}\n{done.stdout}",
        end="",
        flush=True,
    )
    failed = Path(cache, "v", "cache", "lastfailed")
    return done.returncode, list(json.loads(failed.read_text())) if failed.exists() else []


def main(folder, part="everything"):
    groups = commands(part)
    with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
        running = [
            pool.submit(pytest, f"group {i}", group, folder, f"group-{i}")
            for i, group in enumerate(groups, 1)
        ]
    ended = dict(enumerate((each.result() for each in running), 1))
    failed = [number for number, (status, _) in ended.items() if status]
    if not failed:
        return 0
    print(f"\nfailed: groups {failed}")
    again = {number: ended[number][1] for number in failed}
    only_tests = all(ended[number][0] == TESTS_FAILED for number in failed)
    if not only_tests or not all(again.values()) or sum(map(len, again.values())) > FEW:
        return 1
    if any([_again(number, tests, folder) for number, tests in again.items()]):
        return 1
    print("\nfailed at first, passed alone, to be mended:", *chain(*again.values()), sep="\n  ")
    return 0


def _again(number, tests, folder):
    """Run tests of a group once more; return pytest's status."""
    return pytest(f"group {number} once more", tests, folder, f"group-{number}-again")[0]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
