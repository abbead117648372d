"""Transpile Cython sources in one process for each processor: transpile.py JOBS SHARED [DIRECTIVE=VALUE…]

JOBS     file with a line for each source: source, generated file and language (C or CXX), with tabs between; paths
         of sources are relative to the working folder, the top of the packages
SHARED   dotted name of the module that holds what Cython would write into each file. A line of JOBS whose source is
         this name generates it

Cython takes most of a second to start, so a process for each file would take a minute. Sources are transpiled only if
they, their .pxd files, the arguments or Cython have changed; other generated files keep their time, and are not
compiled again. CMake runs it.
"""

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from Cython import __version__
from Cython.Build.Dependencies import create_dependency_tree
from Cython.Build.SharedModule import generate_shared_module
from Cython.Compiler.Main import CompilationOptions, Context, compile


def transpile(source, generated, language, shared, directives):
    """Write a generated file; return the paths that it depends on, or None after an error."""
    Path(generated).parent.mkdir(parents=True, exist_ok=True)
    options = CompilationOptions(
        include_path=[os.getcwd()],
        language_level=3,
        output_file=generated,
        cplus=language == "CXX",
        annotate="annotate" in directives,
        compiler_directives={name: value for name, value in directives.items() if name != "annotate"},
    )
    if source == shared:
        options.module_name, options.shared_c_file_path = shared, generated
        error, _ = generate_shared_module(options)
        return None if error else []
    options.shared_utility_qualified_name = shared
    if compile(source, options, source.rpartition(".")[0].replace("/", ".")).num_errors:
        return None
    tree = create_dependency_tree(Context.from_options(options))
    return sorted(os.path.relpath(each) for each in tree.all_dependencies(source))


def times(paths):
    """Return path → time of its last change in ns; None for a file that is not there."""
    return {path: os.stat(path).st_mtime_ns if os.path.exists(path) else None for path in paths}


def main(jobs, shared, *arguments):
    directives = {}
    for argument in arguments:
        name, _, value = argument.partition("=")
        directives[name] = value == "True"
    made_by = [__version__, shared, *arguments, *times([__file__]).values()]
    known_file = Path(jobs).with_suffix(".json")
    known = json.loads(known_file.read_text()) if known_file.exists() else {}
    lines = [line.split("\t") for line in Path(jobs).read_text().splitlines()]
    wanted = {}
    for source, generated, language in lines:
        before = known.get(source, {"made by": None, "inputs": {}})
        if (
            before["made by"] != [*made_by, generated, language]
            or times(before["inputs"]) != before["inputs"]
            or not os.path.exists(generated)
        ):
            wanted[source] = generated, language
    failed = False
    with ProcessPoolExecutor(min(len(os.sched_getaffinity(0)), len(wanted) or 1)) as processes:
        # The largest first, so that no process waits for another at the end.
        order = sorted(wanted, key=lambda each: -os.path.getsize(each) if os.path.exists(each) else 0)
        futures = {
            source: processes.submit(transpile, source, *wanted[source], shared, directives)
            for source in order
        }
        for number, (source, future) in enumerate(futures.items(), 1):
            inputs = future.result()
            print(f"[{number}/{len(futures)}] {source} to {wanted[source][1]}", flush=True)
            if inputs is None:
                failed = True
                known.pop(source, None)
                continue
            # A .pxd that appears beside the source changes what is generated.
            beside = source if source == shared else source.rpartition(".")[0] + ".pxd"
            known[source] = {
                "made by": [*made_by, *wanted[source]],
                "inputs": times({*inputs, beside}),
            }
    known_file.write_text(json.dumps(known, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
