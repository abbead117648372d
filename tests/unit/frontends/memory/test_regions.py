"""Regions of shared memory: what may be registered, what may be seen, and how long it stays."""

import asyncio
import os
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import dtypes
from core.errors import CoreError, Kind
from frontends.shared.memory import SharedMemoryRegions
from frontends.shared.memory.cuda import CudaRegions
from frontends.shared.memory.region import RegionStatus

PAGE = 4096
HUGE = (2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64)

numbers = st.integers(-3, 70) | st.sampled_from([*HUGE, *(-n for n in HUGE)])


def refusal(call, *args, kind=Kind.INVALID):
    with pytest.raises(CoreError) as caught:
        call(*args)
    assert caught.value.kind is kind
    return caught.value.message


class TestRegister:
    def test_a_region_is_listed_as_it_was_registered(self, regions, client):
        key = client.create(3 * PAGE)

        regions.register("whole", key, 0, 3 * PAGE)
        regions.register("part", key, PAGE, 100)

        whole = RegionStatus("whole", key, 0, 3 * PAGE)
        part = RegionStatus("part", key, PAGE, 100)
        assert regions.status() == [whole, part]
        assert regions.status("part") == [part]

    def test_a_name_is_taken_once(self, regions, client):
        key = client.create()
        regions.register("r", key, 0, 64)

        text = refusal(regions.register, "r", key, 0, 8, kind=Kind.ALREADY_EXISTS)

        assert text == "shared memory region 'r' already in manager"
        assert regions.status("r")[0].byte_size == 64

    def test_a_name_is_needed(self, regions, client):
        assert refusal(regions.register, "", client.create(), 0, 64) == (
            "'region name' is necessary to register system shared memory region"
        )

    def test_a_name_that_no_answer_could_hold_is_refused(self, regions, client):
        assert "must be UTF-8" in refusal(regions.register, "\udcff", client.create(), 0, 64)
        assert "must be UTF-8" in refusal(regions.register, "r", "/\ud800", 0, 64)

    def test_there_are_so_many_at_most(self, client):
        regions, key = SharedMemoryRegions(allowed=True, most=2), client.create()
        regions.register("a", key, 0, 64)
        regions.register("b", key, 0, 64)

        text = refusal(regions.register, "c", key, 0, 64, kind=Kind.UNAVAILABLE)
        regions.unregister("a")
        regions.register("c", key, 0, 64)

        assert text == (
            "failed to register shared memory region 'c': 2 regions are the most; unregister some"
        )

    @pytest.mark.parametrize(
        "offset,byte_size",
        [(0, 0), (0, -1), (0, 65), (64, 1), (PAGE, 1), (-PAGE, 64), *[(0, n) for n in HUGE]]
        + [(n, 64) for n in HUGE]
        + [(2**64 - 32, 64), (2**64 - PAGE, 2 * PAGE)],
    )
    def test_a_place_outside_of_the_object_is_refused(self, regions, client, offset, byte_size):
        text = refusal(regions.register, "r", client.create(64), offset, byte_size)

        assert text == "failed to register shared memory region 'r': invalid args"

    def test_the_offset_is_whole_pages(self, regions, client):
        text = refusal(regions.register, "r", client.create(2 * PAGE), 8, 64)

        assert text.startswith("failed to register shared memory region 'r': its offset is 8 bytes")

    def test_a_refused_region_leaves_its_name_free(self, regions, client):
        key = client.create()
        refusal(regions.register, "r", key, 0, 65)

        regions.register("r", key, 0, 64)


class TestKeys:
    @pytest.mark.parametrize("slashes", ["", "/", "//"])
    def test_leading_slashes_do_not_matter(self, regions, client, slashes):
        key = slashes + client.create(content=b"hello").lstrip("/")

        regions.register("r", key, 0, 64)

        assert bytes(regions.view("r", 0, 5)) == b"hello"
        assert regions.status("r")[0].key == key

    @pytest.mark.parametrize("slashes", ["", "/", "///"])
    def test_the_prefix_of_internal_regions_is_reserved(self, regions, client, slashes):
        key = client.create(prefix="triton_python_backend_shm_region_")

        text = refusal(regions.register, "r", slashes + key.lstrip("/"), 0, 64)

        assert text == (
            "cannot register shared memory region 'r' as its key contains the reserved prefix "
            "'triton_python_backend_shm_region_'"
        )

    @pytest.mark.parametrize(
        "key",
        ["", "/", "///", "/.", "..", "/../etc/hostname", "a/b", "/x\0", "/x\0y", "/" + "x" * 256],
    )
    def test_a_key_that_names_no_object_is_refused(self, regions, key):
        assert refusal(regions.register, "r", key, 0, 1) == (
            "cannot register shared memory region 'r' - invalid shm key"
        )

    def test_a_key_that_nobody_made_cannot_be_opened(self, regions):
        text = refusal(regions.register, "r", "/core_unit_test_absent", 0, 1, kind=Kind.INTERNAL)

        assert text == "Unable to open shared memory region: 'r'"

    def test_links_are_not_followed(self, regions, client, tmp_path):
        secret = tmp_path / "secret"
        secret.write_bytes(b"x" * 64)
        for target in (secret, "/dev/shm" + client.create()):
            text = refusal(regions.register, "r", client.link(target), 0, 64, kind=Kind.INTERNAL)
            assert text == "Unable to open shared memory region: 'r'"

    def test_only_memory_is_opened(self, regions, client):
        text = refusal(regions.register, "r", client.pipe(), 0, 1, kind=Kind.INTERNAL)

        assert text == "Unable to open shared memory region: 'r'"

    def test_no_text_shows_a_key(self, regions, client):
        key = client.create()
        regions.register("taken", key, 0, 64)

        texts = [
            refusal(regions.register, "taken", key, 0, 64, kind=Kind.ALREADY_EXISTS),
            refusal(regions.register, "r", key, 0, 65),
            refusal(regions.register, "r", key, 1, 1),
            refusal(regions.register, "r", key + "_absent", 0, 1, kind=Kind.INTERNAL),
            refusal(regions.register, "r", client.link("/dev/shm" + key), 0, 1, kind=Kind.INTERNAL),
            refusal(regions.view, "taken", 64, 1),
            refusal(regions.view, "taken", 63, 2),
        ]

        assert not any(key.lstrip("/") in text for text in texts)


class TestViews:
    def test_a_view_is_the_memory_itself(self, regions, client):
        key = client.create(content=b"0123456789")
        regions.register("r", key, 0, 64)
        view = regions.view("r", 2, 4)

        assert bytes(view) == b"2345"
        client.write(key, 2, b"ab")
        assert bytes(view) == b"ab45"
        view[3] = ord("z")
        assert client.read(key)[:7] == b"01ab4z6"

    def test_the_offset_of_the_registration_counts_once(self, regions, client):
        key = client.create(3 * PAGE)
        client.write(key, PAGE + 7, b"here")
        regions.register("r", key, PAGE, PAGE)

        assert bytes(regions.view("r", 7, 4)) == b"here"
        assert len(regions.view("r", 0, PAGE)) == PAGE
        refusal(regions.view, "r", PAGE, 1)

    def test_an_unknown_region_is_not_found(self, regions):
        text = refusal(regions.view, "r", 0, 1, kind=Kind.NOT_FOUND)

        assert text == "Unable to find shared memory region: 'r'"

    def test_texts_name_the_exceeded_bound(self, regions, client):
        regions.register("r", client.create(), 0, 64)

        assert refusal(regions.view, "r", 64, 0) == ("Invalid offset for shared memory region: 'r'")
        assert refusal(regions.view, "r", 63, 2) == (
            "Invalid offset + byte size for shared memory region: 'r'"
        )
        assert refusal(regions.view, "r", 1, 2**64 - 1) == (
            "Integer overflow detected: byte_size (18446744073709551615) + offset (1) exceeds maximum value "
            "(18446744073709551615) for region 'r'"
        )

    def test_memory_that_became_smaller_is_not_touched(self, regions, client):
        key = client.create(2 * PAGE)
        regions.register("r", key, PAGE, PAGE)
        os.truncate("/dev/shm" + key, PAGE + 16)

        assert len(regions.view("r", 0, 16)) == 16
        refusal(regions.view, "r", 0, 17)
        os.truncate("/dev/shm" + key, 0)
        refusal(regions.view, "r", 0, 1)

    def test_inputs_cannot_be_written_through(self, regions, client):
        regions.register("r", client.create(), 0, 64)

        with pytest.raises(TypeError):
            regions.read("r", 0, 4, dtypes.FP32)[0] = 1

    def test_lengths_in_bytes_tensors_stay_as_they_were_checked(self, regions, client):
        key = client.create(content=b"\1\0\0\0a")
        regions.register("r", key, 0, 64)
        words, numbers = (regions.read("r", 0, 5, dtype) for dtype in (dtypes.BYTES, dtypes.UINT8))

        client.write(key, 0, b"\xff")

        assert (bytes(words), bytes(numbers)) == (b"\1\0\0\0a", b"\xff\0\0\0a")


@pytest.fixture(scope="module")
def sixty_four(tmp_path_factory):
    """A region of 64 bytes with all of them different, and these bytes."""
    content = bytes(range(64))
    path = f"/dev/shm/core_bounds_test_{os.getpid()}"
    with open(path, "xb") as file:
        file.write(content)
    regions = SharedMemoryRegions(allowed=True)
    regions.register("r", "/" + os.path.basename(path), 0, 64)
    yield regions, content
    os.unlink(path)


@given(offset=numbers, byte_size=numbers)
def test_a_view_has_the_bytes_that_it_names_or_there_is_none(sixty_four, offset, byte_size):
    regions, content = sixty_four
    inside = offset in range(64) and byte_size in range(64 - offset + 1)

    try:
        found = bytes(regions.view("r", offset, byte_size))
    except CoreError as error:
        assert error.kind is Kind.INVALID
        assert re.fullmatch(
            r"Invalid offset( \+ byte size)? for shared memory region: 'r'|Integer overflow detected: .*",
            error.message,
        )
        assert not inside
    else:
        assert inside
        assert found == content[offset : offset + byte_size]


@given(
    size=st.integers(1, 4 * PAGE),
    offset=st.sampled_from([0, PAGE, 2 * PAGE, 3 * PAGE, 4 * PAGE]) | numbers,
    byte_size=st.integers(-1, 4 * PAGE + 1) | numbers,
)
def test_a_region_is_within_its_object_or_there_is_none(size, offset, byte_size):
    path = f"/dev/shm/core_object_test_{os.getpid()}"
    with open(path, "wb") as file:
        file.truncate(size)
    regions = SharedMemoryRegions(allowed=True)
    inside = (
        offset in range(0, size, PAGE) and byte_size > 0 and byte_size in range(size - offset + 1)
    )

    try:
        regions.register("r", os.path.basename(path), offset, byte_size)
        assert inside
        assert len(regions.view("r", 0, byte_size)) == byte_size
    except CoreError as error:
        assert error.kind is Kind.INVALID
        assert not inside
    finally:
        os.unlink(path)


class TestUnregister:
    def test_one_region_or_all(self, regions, client):
        for name in "abc":
            regions.register(name, client.create(), 0, 64)

        regions.unregister("b")
        assert [region.name for region in regions.status()] == ["a", "c"]
        regions.unregister()
        assert regions.status() == []

    def test_an_unknown_region_is_no_error(self, regions):
        regions.unregister("absent")
        regions.unregister()

    def test_an_unregistered_region_is_unknown_to_new_requests_at_once(self, regions, client):
        regions.register("r", client.create(), 0, 64)
        view = regions.view("r", 0, 4)
        regions.unregister("r")

        refusal(regions.view, "r", 0, 4, kind=Kind.NOT_FOUND)
        assert refusal(regions.status, "r", kind=Kind.NOT_FOUND) == (
            "Unable to find system shared memory region: 'r'"
        )
        assert len(view) == 4

    def test_memory_stays_as_long_as_a_view_of_it(self, regions, client, mappings):
        key = client.create(content=b"data")
        regions.register("r", key, 0, 64)
        views = [regions.view("r", 0, 4), regions.read("r", 0, 4, dtypes.UINT8)]
        regions.unregister("r")

        assert mappings() == 1
        assert all(bytes(view) == b"data" for view in views)
        views[0][0] = ord("D")
        assert client.read(key)[:4] == b"Data"
        views.pop(0)
        assert mappings() == 1
        views.pop(0)
        assert mappings() == 0

    def test_a_name_is_free_while_a_request_uses_its_old_memory(self, regions, client):
        old, new = client.create(content=b"old"), client.create(content=b"new")
        regions.register("r", old, 0, 64)
        view = regions.view("r", 0, 3)

        regions.unregister("r")
        regions.register("r", new, 0, 64)

        assert (bytes(view), bytes(regions.view("r", 0, 3))) == (b"old", b"new")

    def test_an_object_may_be_removed_while_it_is_registered(self, regions, client):
        key = client.create(content=b"data")
        regions.register("r", key, 0, 64)
        client.remove_all()
        client._files.clear()

        assert bytes(regions.view("r", 0, 4)) == b"data"

    def test_neither_files_nor_mappings_are_left(self, regions, client, mappings):
        key, link, pipe = client.create(2 * PAGE), client.link("/etc/hostname"), client.pipe()
        counts = []
        for _ in range(3):
            for i in range(20):
                regions.register(f"r{i}", key, 0, PAGE)
                regions.view(f"r{i}", 0, 8)
                for wrong in ((key, 0, 3 * PAGE), (key, 8, 8), (link, 0, 1), (pipe, 0, 1)):
                    with pytest.raises(CoreError):
                        regions.register("wrong", *wrong)
            regions.unregister()
            counts.append(len(os.listdir("/proc/self/fd")))

        assert mappings() == 0
        assert all(before == after for before, after in pairwise(counts))

    def test_the_end_of_the_server_unregisters_all(self, regions, client, mappings):
        regions.register("r", client.create(), 0, 64)

        regions.close()

        assert (regions.status(), mappings()) == ([], 0)


class TestNotAllowed:
    @pytest.fixture
    def closed(self):
        return SharedMemoryRegions(allowed=False)

    def test_nothing_is_registered_or_unregistered(self, closed, client):
        for call in (
            lambda: closed.register("r", client.create(), 0, 64),
            lambda: closed.unregister("r"),
            closed.unregister,
            lambda: asyncio.run(CudaRegions(closed).register("r", bytes(64), 0, 1)),
            lambda: closed.unregister(kind="cuda"),
        ):
            assert refusal(call, kind=Kind.UNSUPPORTED) == (
                "Client shared memory is disabled. Start the server with '--allow-client-shm=true' "
                "to enable."
            )

    def test_the_list_is_empty(self, closed):
        assert closed.status() == closed.status(kind="cuda") == []
        refusal(closed.status, "r", kind=Kind.NOT_FOUND)
        refusal(closed.view, "r", 0, 1, kind=Kind.NOT_FOUND)
