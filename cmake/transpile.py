"""Transpile Cython sources in one process for each processor: transpile.py JOBS SHARED [DIRECTIVE=VALUE…]

JOBS     file with a line for each source: source, generated file and language (C or CXX), with tabs between.
         Paths of sources are relative to the working folder, the top of the packages
SHARED   dotted name of the module with the functions that Cython would write into each generated file. The
         line of JOBS with this name as its source generates it

Cython takes most of a second to start: with a process for each file, that would be a minute. A source is
transpiled only if it, its .pxd files, the arguments or Cython have changed. Generated files that stay the
same keep their times, so that they are not compiled again. CMake runs this program.
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


def transpile(source, generated, language, shared, arguments):
    """Write a generated file; return the paths that it depends on, or None after an error."""
    Path(generated).parent.mkdir(parents=True, exist_ok=True)
    time_ns = times([generated])[generated]
    before = None if time_ns is None else Path(generated).read_bytes()
    inputs = generate(source, generated, language, shared, arguments)
    if inputs is not None:
        keep_time(generated, before, time_ns)
    return inputs


def generate(source, generated, language, shared, arguments):
    """Do the same, with a new time in any case."""
    directives = dict(each.split("=") for each in arguments)
    annotate = directives.pop("annotate", None) == "True"
    options = CompilationOptions(
        include_path=[os.getcwd()],
        language_level=3,
        output_file=generated,
        cplus=language == "CXX",
        annotate=annotate,
        compiler_directives={name: value == "True" for name, value in directives.items()},
    )
    if source == shared:
        options.module_name, options.shared_c_file_path = shared, generated
        error, _ = generate_shared_module(options)
        return None if error else []
    options.shared_utility_qualified_name = shared
    name = source.rpartition(".")[0]
    if compile(source, options, name.replace("/", ".")).num_errors:
        return None
    tree = create_dependency_tree(Context.from_options(options))
    # A .pxd that appears beside the source changes what is generated.
    return [*map(os.path.relpath, tree.all_dependencies(source)), f"{name}.pxd"]


def keep_time(generated, before, time_ns):
    """Give a generated file its earlier time if it has its earlier content."""
    if before is not None and Path(generated).read_bytes() == before:
        os.utime(generated, ns=(time_ns, time_ns))


def times(paths):
    """Return path → time of its last change in ns; None for a file that is not there."""
    return {path: os.stat(path).st_mtime_ns if os.path.exists(path) else None for path in paths}


def up_to_date(known, made_by, generated):
    """Return whether a generated file is what would be generated now. `known` is what is known of it."""
    return (
        known["made by"] == made_by
        and times(known["inputs"]) == known["inputs"]
        and os.path.exists(generated)
    )


def main(jobs, shared, *arguments):
    state = Path(jobs).with_suffix(".json")
    known = json.loads(state.read_text()) if state.exists() else {}
    wanted = {}
    for line in Path(jobs).read_text().splitlines():
        source, generated, language = line.split("\t")
        made_by = [
            __version__,
            times([__file__])[__file__],
            generated,
            language,
            shared,
            *arguments,
        ]
        if source not in known or not up_to_date(known[source], made_by, generated):
            wanted[source] = made_by
    failed = False
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(wanted) or 1)) as processes:
        running = {}
        # The largest first, so that no process waits for another at the end.
        for source in sorted(
            wanted, key=lambda each: os.path.exists(each) and -os.path.getsize(each)
        ):
            _, _, generated, language, *_ = wanted[source]
            job = source, generated, language, shared, arguments
            running[source] = processes.submit(transpile, *job)
        for number, (source, future) in enumerate(running.items(), 1):
            inputs = future.result()
            print(f"[{number}/{len(running)}] {source}", flush=True)
            if inputs is None:
                failed = True
                known.pop(source, None)
            else:
                known[source] = {"made by": wanted[source], "inputs": times(inputs)}
    state.write_text(json.dumps(known, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
