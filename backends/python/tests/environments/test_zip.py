"""Archives of environments that are zips, or compressed with Zstandard."""

import os
import stat
import tarfile
import zipfile

import pytest
from backend_python.environments import Unusable
from backend_python.environments.archive import is_archive, unpack

PLENTY = 1 << 20


def entry(name, content=b"", mode=0o644, kind=stat.S_IFREG):
    info = zipfile.ZipInfo(name, date_time=(2024, 2, 3, 4, 5, 6))
    info.create_system, info.external_attr = 3, (kind | mode) << 16  # of Unix
    return info, content


def link(name, target):
    return entry(name, target.encode(), 0o777, stat.S_IFLNK)


@pytest.fixture
def pack(tmp_path):
    """Return pack(*entries), which writes an archive and returns its path."""

    def pack(*entries, compression=zipfile.ZIP_DEFLATED):
        path = tmp_path / "env.zip"
        with zipfile.ZipFile(path, "w", compression) as file:
            for info, content in entries:
                file.writestr(info, content, compression)
        return path

    return pack


@pytest.fixture
def to(tmp_path):
    return tmp_path / "unpacked"


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_files_come_out_with_content_time_and_whether_they_run(pack, to, compression):
    archive = pack(
        entry("bin/", mode=0o700, kind=stat.S_IFDIR),
        entry("bin/python", b"#!", 0o4755),
        entry("lib/deep/module.py", b"x = 1", 0o600),
        link("bin/python3", "python"),
        link("lib64", "lib"),
        compression=compression,
    )

    unpack(archive, to, PLENTY)

    assert (to / "lib64/deep/module.py").read_bytes() == b"x = 1"
    assert os.path.getmtime(to / "lib/deep/module.py") % 60 == 6
    assert (to / "bin/python3").read_bytes() == b"#!"
    assert stat.S_IMODE((to / "bin/python").stat().st_mode) == 0o755
    assert stat.S_IMODE((to / "lib/deep/module.py").stat().st_mode) == 0o644


REFUSED = {
    "an absolute name": ([entry("/etc/x")], "outside of"),
    "a name that goes up": ([entry("a/../../x")], "outside of"),
    "a link to a place of the system": ([link("bin/python", "/usr/bin/python3")], "outside of"),
    "a link that goes up": ([link("a/b", "../../x")], "outside of"),
    "a link whose name the system would not follow": ([link("a", "b/" * 2000)], "outside of"),
    "a file behind a link": ([link("lib", "../x"), entry("lib/x")], "others lie behind it"),
    "a device": ([entry("a", kind=stat.S_IFCHR)], "neither a file nor a folder nor a link"),
}


@pytest.mark.parametrize("entries,text", REFUSED.values(), ids=REFUSED)
def test_an_archive_with_unsupported_entries_is_refused(pack, to, entries, text):
    with pytest.raises(Unusable, match=text):
        unpack(pack(*entries), to, PLENTY)


def test_an_archive_may_hold_so_many_bytes_and_no_more(pack, to, tmp_path):
    archive = pack(entry("a", bytes(600)), entry("b", bytes(400)))

    unpack(archive, to, 1000)
    with pytest.raises(Unusable, match=r"holds more than 999 bytes"):
        unpack(archive, tmp_path / "other", 999)

    assert not (tmp_path / "other/b").exists()


def test_a_file_has_at_most_the_bytes_of_its_entry(pack, to):
    archive = pack(entry("a", bytes(5000)))
    content = archive.read_bytes()
    told, wrong = (size.to_bytes(4, "little") for size in (5000, 10))
    assert content.count(told) == 2  # in the file's own head, and in the directory at the end
    archive.write_bytes(content.replace(told, wrong))

    with pytest.raises(Unusable, match="cannot be unpacked: BadZipFile: Bad CRC"):
        unpack(archive, to, 10)

    assert not (to / "a").exists() or (to / "a").stat().st_size <= 10


def test_a_file_with_a_password_is_refused(pack, to):
    archive = pack(entry("a", b"secret"))
    content = bytearray(archive.read_bytes())
    content[6] |= 1  # in the file's own head
    content[content.index(b"PK\x01\x02") + 8] |= 1  # in the directory
    archive.write_bytes(content)

    with pytest.raises(Unusable, match=r"cannot be unpacked: RuntimeError: .*password"):
        unpack(archive, to, PLENTY)


def test_a_zip_that_was_cut_is_refused(pack, to):
    archive = pack(entry("a", os.urandom(9000)))
    archive.write_bytes(archive.read_bytes()[:5000])

    with pytest.raises(Unusable, match="cannot be unpacked: BadZipFile"):
        unpack(archive, to, PLENTY)


def test_a_program_with_an_appended_zip_is_no_archive(pack, tmp_path):
    archive = pack(entry("__main__.py", b"print(1)"))
    program = tmp_path / "program"
    program.write_bytes(b"#!/usr/bin/env python3\n" + archive.read_bytes())

    assert is_archive(archive)
    assert zipfile.is_zipfile(program)
    assert not is_archive(program)


@pytest.fixture
def zstandard_archive(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "module.py").write_text("x = 1")
    with tarfile.open(tmp_path / "env.tar", "w") as tar:
        tar.add(tmp_path / "module.py", arcname="lib/module.py")
    archive = tmp_path / "env.tar.zst"
    archive.write_bytes(zstandard.compress((tmp_path / "env.tar").read_bytes()))
    return archive


def test_a_tar_compressed_with_zstandard_is_unpacked(zstandard_archive, to):
    assert is_archive(zstandard_archive)

    unpack(zstandard_archive, to, PLENTY)

    assert (to / "lib/module.py").read_text() == "x = 1"


def test_without_a_module_for_zstandard_the_way_out_is_named(zstandard_archive, to, monkeypatch):
    monkeypatch.setattr(
        "backend_python.environments.archive.importlib.import_module",
        lambda name: (_ for _ in ()).throw(ImportError(name)),
    )

    with pytest.raises(Unusable, match=r"pip install zstandard, or pack it as \.tar\.gz"):
        unpack(zstandard_archive, to, PLENTY)
