"""Print the symbols of compiled modules that glibc 2.28 or GCC 8 lacks: python .ci/oldest_glibc.py FILE…

A FILE is a module (.so), or a wheel that contains modules. A line names a module, a symbol, its version and
the newest that is allowed. Exit status 1 if there is such a symbol. Needs nothing but Python.
"""

import re
import struct
import sys
import zipfile
from pathlib import Path

# Of glibc 2.28, and of the libstdc++ and libgcc of GCC 8. The policy manylinux_2_28 allows the same.
NEWEST = {"GLIBC": "2.28", "GLIBCXX": "3.4.25", "CXXABI": "1.3.11", "GCC": "7.0.0"}

_SECTIONS = {"symbols": 11, "needed": 0x6FFFFFFE, "versions": 0x6FFFFFFF}  # SHT_* in elf.h
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NEEDED = struct.Struct("<HHIII")
_VERSION = struct.Struct("<IHHII")


def needed(module: bytes) -> dict[str, list[str]]:
    """Return the undefined symbols of a 64-bit little-endian ELF file by the version that they need.

    Raises ValueError if the bytes are no such file.
    """
    if module[:6] != b"\x7fELF\x02\x01":
        raise ValueError("this is not a 64-bit little-endian ELF file")
    offset, size, count = (
        *struct.unpack_from("<Q", module, 0x28),
        *struct.unpack_from("<HH", module, 0x3A),
    )
    table = [_SECTION.unpack_from(module, offset + i * size) for i in range(count)]
    # By kind: where its bytes are, how many, and where its strings are.
    found = {
        kind: (s[4], s[5], table[s[6]][4])
        for kind, number in _SECTIONS.items()
        for s in table
        if s[1] == number
    }
    if "needed" not in found:
        return {}
    names = dict(_versions(module, found["needed"]))
    by_version: dict[str, list[str]] = {name: [] for name in names.values()}
    start, bytes_, strings = found["symbols"]
    for i in range(bytes_ // _SYMBOL.size):
        name, _, _, section, _, _ = _SYMBOL.unpack_from(module, start + i * _SYMBOL.size)
        (index,) = struct.unpack_from("<H", module, found["versions"][0] + 2 * i)
        if section == 0 and index in names:
            by_version[names[index]].append(_text(module, strings + name))
    return by_version


def _versions(module, section):
    """Yield the index and the name of each version that other libraries must have."""
    at, _, strings = section
    while True:
        _, count, _, first, following = _NEEDED.unpack_from(module, at)
        each = at + first
        for _ in range(count):
            _, _, index, name, distance = _VERSION.unpack_from(module, each)
            yield index, _text(module, strings + name)
            each += distance
        if following == 0:
            return
        at += following


def _text(module, at):
    return module[at : module.index(b"\0", at)].decode()


def is_too_new(version: str) -> bool:
    """Whether a version such as GLIBC_2.29 is newer than those in NEWEST. False for other libraries."""
    library, _, number = version.partition("_")
    if library not in NEWEST:
        return False
    # GLIBC_ABI_DT_RELR has no number, and came with 2.36.
    return not re.fullmatch(r"[\d.]+", number) or _order(number) > _order(NEWEST[library])


def _order(number):
    return [int(each) for each in number.split(".")]


def too_new(module: bytes) -> list[str]:
    """Return a sentence for each symbol of a module whose version is too new, sorted."""
    return sorted(
        f"{symbol} needs {version}, the newest allowed is {NEWEST[version.partition('_')[0]]}"
        for version, symbols in needed(module).items()
        if is_too_new(version)
        for symbol in symbols or ["the module"]
    )


def modules(file: Path):
    """Yield the name and the bytes of a module, or of each module in a wheel."""
    if file.suffix != ".whl":
        yield str(file), file.read_bytes()
        return
    with zipfile.ZipFile(file) as wheel:
        for name in wheel.namelist():
            if re.search(r"\.so(\.[\d.]+)?$", name):
                yield f"{file.name}: {name}", wheel.read(name)


def main(files: list[str]) -> int:
    lines = [
        f"{name}: {line}"
        for file in files
        for name, module in modules(Path(file))
        for line in too_new(module)
    ]
    print(
        "\n".join(lines)
        if lines
        else "glibc 2.28 and the libraries of GCC 8 have all that is needed."
    )
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
