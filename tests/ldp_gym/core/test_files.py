"""Files written as a whole: by several writers, on other systems, on a full disk; and packed arrays."""

import errno
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import with_each_bit_flipped

from ldp_gym.core import files
from ldp_gym.core.files import pack_arrays, replacing, unpack_arrays, write_text

ARRAYS = {
    "kl": np.array([[0.5, np.inf], [1.0, 2.0]]),
    "weights": np.ones(3, np.float32),
    "leaders": np.array([3, -1]),
    "left": np.array([True, False]),
    "empty": np.zeros((0, 4)),
}

# -- Writing ------------------------------------------------------------------------------------------------


def test_a_file_is_synced_through_a_handle_that_may_write(tmp_path, monkeypatch):
    """Windows refuses to sync a file that is open for reading."""
    handles = []
    real = os.fsync

    def windows_fsync(handle):
        os.write(handle, b"")  # EBADF where the handle may only read
        handles.append(handle)
        real(handle)

    monkeypatch.setattr(os, "fsync", windows_fsync)
    write_text(tmp_path / "a.txt", "ε")
    assert handles
    assert (tmp_path / "a.txt").read_bytes() == "ε".encode()


def write_half(path, named):
    with replacing(path) as part:
        part.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device", *([str(part)] if named else []))


@pytest.mark.parametrize("named", [False, True])
def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path, named):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OSError, match=r"No space left.*a\.txt") as caught:
        write_half(path, named)
    assert caught.value.filename == str(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_several_threads_may_write_and_read_one_file(tmp_path):
    path = tmp_path / "a.txt"
    contents = [letter * 20_000 for letter in "abc"]
    write_text(path, contents[0])

    def write_and_read(content):
        read = []
        for _ in range(50):
            write_text(path, content)
            read.append(path.read_text())
        return read

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(write_and_read, contents))
    assert {content for read in results for content in read} <= set(contents)
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_a_link_at_the_target_is_replaced_and_not_followed(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    link = tmp_path / "report.html"
    link.symlink_to(precious)

    write_text(link, "report")
    assert precious.read_text() == "precious"
    assert link.read_text() == "report"
    assert not link.is_symlink()


def test_a_link_at_the_name_of_the_part_is_not_followed(tmp_path, monkeypatch):
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    monkeypatch.setattr(files.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / ".part-guessed.html").symlink_to(precious)

    with pytest.raises(FileExistsError):
        write_text(tmp_path / "report.html", "report")
    assert precious.read_text() == "precious"
    assert (tmp_path / ".part-guessed.html").is_symlink()


# -- Packed arrays ------------------------------------------------------------------------------------------


def test_arrays_come_back_with_their_types_and_shapes():
    unpacked = unpack_arrays(pack_arrays(ARRAYS, {"learner": "bayes"}))
    assert unpacked.note == {"learner": "bayes"}
    assert list(unpacked.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert unpacked.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(unpacked.arrays[name], array)


def test_arrays_that_come_back_may_be_changed():
    unpacked = unpack_arrays(pack_arrays(ARRAYS))
    unpacked.arrays["kl"][0, 0] = 7.0
    assert unpacked.arrays["kl"][0, 0] == 7.0


@pytest.mark.parametrize("array", [np.array(["text"]), np.array([None]), np.array([1j])])
def test_other_things_than_numbers_are_not_packed(array):
    with pytest.raises(TypeError, match="array 'odd' cannot be stored: its type is"):
        pack_arrays({"odd": array})


def test_a_flipped_bit_is_noticed_wherever_it_is():
    packed = pack_arrays({"kl": np.array([0.5, 1.0])}, {"learner": "bayes"})
    for damaged in with_each_bit_flipped(packed):
        with pytest.raises(ValueError, match=r"damaged|does not hold arrays"):
            unpack_arrays(damaged)


def test_a_cut_is_noticed_wherever_it_is():
    packed = pack_arrays({"kl": np.array([0.5, 1.0])}, {"learner": "bayes"})
    for length in range(len(packed)):
        with pytest.raises(ValueError, match=r"damaged|does not hold arrays"):
            unpack_arrays(packed[:length])


def forged(header, numbers=b""):
    """Packed bytes with a correct checksum around a header of one's choice."""
    content = header.encode() + b"\n" + numbers
    start = pack_arrays({})[: len(files._FIRST_LINE)]
    return start + files.hashlib.sha256(content).hexdigest().encode() + b"\n" + content


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ('{"arrays": [{"name": "a", "dtype": "<f8", "shape": [10000000000000]}]}', "longer than"),
        ('{"arrays": [{"name": "a", "dtype": "|O", "shape": [1]}]}', "the type '|O'"),
        ('{"arrays": [{"name": "a", "dtype": "<f8", "shape": [-1]}]}', "the shape"),
        ('{"arrays": [{"name": "a", "dtype": "<f8", "shape": [true]}]}', "the shape"),
        ('{"arrays": [], "note": 3}', "header does not describe arrays"),
        ('{"arrays": 3, "note": {}}', "header does not describe arrays"),
        ("[" * 100_000, "header does not describe arrays"),
        ("no JSON", "Expecting value"),
    ],
)
def test_a_header_that_lies_is_refused_without_taking_memory(header, message):
    packed = forged(header)
    tracemalloc.start()
    with pytest.raises(ValueError, match=message):
        unpack_arrays(packed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_bytes_that_belong_to_no_array_are_refused():
    with pytest.raises(ValueError, match="8 bytes belong to no array"):
        unpack_arrays(forged('{"arrays": [], "note": {}}', b"12345678"))
