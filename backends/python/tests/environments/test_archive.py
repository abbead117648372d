"""Archives of environments: the unpacked files, and the refused entries."""

import gzip
import io
import os
import resource
import stat
import tarfile

import pytest
from backend_python.environments import Unusable
from backend_python.environments.archive import is_archive, unpack

PLENTY = 1 << 20


def entry(name, kind=tarfile.REGTYPE, link="", mode=0o644, content=b""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, link, mode, len(content)
    info.mtime = 1_000_000_000
    return info, content


def link(name, target):
    return entry(name, tarfile.SYMTYPE, target)


@pytest.fixture
def pack(tmp_path):
    """Return pack(*entries), which writes an archive and returns its path."""

    def pack(*entries, mode="w:gz"):
        path = tmp_path / "env.tar.gz"
        with tarfile.open(path, mode) as tar:
            for info, content in entries:
                tar.addfile(info, io.BytesIO(content))
        return path

    return pack


@pytest.fixture
def to(tmp_path):
    return tmp_path / "unpacked"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_files_come_out_with_content_time_and_whether_they_run(pack, to, mode):
    archive = pack(
        entry("bin", tarfile.DIRTYPE, mode=0o700),
        entry("bin/python", mode=0o4755, content=b"#!"),
        entry("./lib/deep/module.py", mode=0o600, content=b"x = 1"),
        mode=mode,
    )

    unpack(archive, to, PLENTY)

    assert (to / "lib/deep/module.py").read_bytes() == b"x = 1"
    assert (to / "lib/deep/module.py").stat().st_mtime == 1_000_000_000
    assert stat.S_IMODE((to / "bin/python").stat().st_mode) == 0o755
    assert stat.S_IMODE((to / "lib/deep/module.py").stat().st_mode) == 0o644


def test_links_within_the_archive_are_made(pack, to):
    archive = pack(
        link("bin/python", "python3.11"),  # before its target
        entry("bin/python3.11", content=b"#!"),
        entry("lib/a", content=b"a"),
        link("lib64", "lib"),
        link("share/a", "../lib64/a"),
        entry("lib/b", tarfile.LNKTYPE, "lib/a"),
        entry("bin/python3", tarfile.LNKTYPE, "bin/python"),
        link("gone", "nowhere"),
    )

    unpack(archive, to, PLENTY)

    assert (to / "bin/python").read_bytes() == (to / "bin/python3").read_bytes() == b"#!"
    assert (to / "share/a").read_bytes() == b"a"
    assert (to / "lib/b").samefile(to / "lib/a")
    assert os.readlink(to / "gone") == "nowhere"


def test_the_last_of_equal_names_counts(pack, to):
    archive = pack(
        entry("a", content=b"1"),
        link("a", "b"),
        entry("a", content=b"2"),
        entry("b", content=b"3"),
        link("b", "a"),
    )

    unpack(archive, to, PLENTY)

    assert (to / "a").read_bytes() == (to / "b").read_bytes() == b"2"
    assert (to / "b").is_symlink()


OUTSIDE = {
    "an absolute name": [entry("/etc/x")],
    "a name that goes up": [entry("a/../../x")],
    "a link to a place of the system": [link("bin/python", "/usr/bin/python3")],
    "a link that goes up": [link("a/b", "../../x")],
    "a link over a link": [
        # By their names they stay within: d/e/up is the top, and above it is the outside.
        entry("d/e/x"),
        link("d/e/up", "../.."),
        link("out", "d/e/up/.."),
    ],
    "a link whose name the system would not follow": [link("a", "b/" * 2000 + "..")],
    "a hard link to the outside": [entry("a", tarfile.LNKTYPE, "../x")],
}


@pytest.mark.parametrize("entries", OUTSIDE.values(), ids=OUTSIDE)
def test_paths_and_links_to_the_outside_are_refused(pack, to, entries):
    with pytest.raises(Unusable, match="outside of"):
        unpack(pack(*entries), to, PLENTY)


def test_nothing_is_written_through_a_link(pack, to, tmp_path):
    (tmp_path / "victim").mkdir()
    archive = pack(
        link("lib", "../victim"),
        entry("lib/x", content=b"x"),
    )

    with pytest.raises(Unusable, match="entry 'lib' is a link, and others lie behind it"):
        unpack(archive, to, PLENTY)

    assert list((tmp_path / "victim").iterdir()) == []


REFUSED = {
    "a device": ([entry("a", tarfile.CHRTYPE)], "'a' is neither a file nor a folder nor a link"),
    "a pipe": ([entry("a", tarfile.FIFOTYPE)], "'a' is neither a file nor a folder nor a link"),
    "a long name": ([entry("a" * 2000)], "has a name of more than 1024 bytes"),
    "a file in a file": (
        [entry("a"), entry("a/b")],
        "entry 'a' is a folder, and another is a file",
    ),
    "a file for a folder": (
        [entry("a/b"), entry("a")],
        "entry 'a' is a file, and another is a fol",
    ),
    "a hard link to nothing": ([entry("a", tarfile.LNKTYPE, "b")], "'b', which is no file before"),
}


@pytest.mark.parametrize("entries,text", REFUSED.values(), ids=REFUSED)
def test_an_archive_with_unsupported_entries_is_refused(pack, to, entries, text):
    with pytest.raises(Unusable, match=text):
        unpack(pack(*entries), to, PLENTY)


def test_an_archive_may_hold_so_many_bytes_and_no_more(pack, to, tmp_path):
    archive = pack(entry("a", content=bytes(600)), entry("b", content=bytes(400)))

    unpack(archive, to, 1000)
    with pytest.raises(Unusable, match=r"holds more than 999 bytes; .*max-byte-size=N allows more"):
        unpack(archive, tmp_path / "other", 999)

    assert not (tmp_path / "other/b").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_metadata_of_an_entry_is_limited(tmp_path, to, kind):
    """A bomb of a few kilobytes: names and headers are held in memory, and no limit of files counts them."""
    info = tarfile.TarInfo("large")
    info.type, info.size = kind, 1 << 31
    with gzip.open(tmp_path / "env.tar.gz", "wb") as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.write(bytes(4 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(Unusable, match="'large' describes another with 2147483648 bytes; it may"):
        unpack(tmp_path / "env.tar.gz", to, PLENTY)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 << 10  # in KiB


def test_an_archive_that_ends_in_its_first_entry_is_known_and_refused(tmp_path, to):
    archive = tmp_path / "env.tar.gz"
    archive.write_bytes(gzip.compress(os.urandom(9000))[:20])

    assert is_archive(archive)
    with pytest.raises(Unusable, match="cannot be unpacked: "):
        unpack(archive, to, PLENTY)


@pytest.mark.parametrize("damage", ["cut", "changed", "no archive"])
def test_a_damaged_archive_is_refused(pack, to, damage):
    archive = pack(entry("a", content=os.urandom(9000)))
    whole = archive.read_bytes()
    middle = len(whole) // 2
    archive.write_bytes(
        {
            "cut": whole[:middle],
            "changed": whole[:middle] + b"xxxx" + whole[middle + 4 :],
            "no archive": b"never packed" * 100,
        }[damage]
    )

    with pytest.raises(Unusable, match="cannot be unpacked: "):
        unpack(archive, to, PLENTY)
