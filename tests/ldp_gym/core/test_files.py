"""Files written as a whole: on other systems, and on a full disk."""

import errno
import os

import pytest

from ldp_gym.core.files import replacing, write_text


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
