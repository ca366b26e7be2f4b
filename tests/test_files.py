import random

import pytest
import torch

from graphgps_pearl import files
from graphgps_pearl.errors import UserError
from graphgps_pearl.files import DamagedFileError, exclusive


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "file"
    files.write_atomically(target, "old")

    def fail(file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    for write in (files.write_atomically, files.write_verified):
        with pytest.raises(OSError, match="No space"):
            write(target, fail)
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_verified_content_comes_back_and_its_hash_is_that_of_the_content(tmp_path):
    for content in (b"", b"x", bytes(10_000_000)):
        digest = files.write_verified(tmp_path / "verified", content)
        files.write_atomically(tmp_path / "plain", content)
        assert files.read_verified(tmp_path / "verified") == content
        assert files.verify(tmp_path / "verified") == digest
        assert digest == files.hash_of(content)
    with pytest.raises(DamagedFileError, match=r"plain.*missing"):
        files.verify(tmp_path / "plain")


def test_torch_reads_verified_files_mapped_and_not(tmp_path):
    state = {"a": torch.randn(100, 100), "b": {"c": torch.arange(5)}}
    files.write_verified(tmp_path / "x.pt", lambda file: torch.save(state, file))
    files.verify(tmp_path / "x.pt")
    for mmap in (False, True):
        found = torch.load(tmp_path / "x.pt", weights_only=True, mmap=mmap)
        assert torch.equal(found["a"], state["a"]) and torch.equal(found["b"]["c"], state["b"]["c"])


def test_every_flipped_bit_and_every_truncation_is_noticed(tmp_path):
    path, rng = tmp_path / "file", random.Random(0)
    files.write_verified(path, rng.randbytes(500))
    whole = path.read_bytes()
    for bit in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        for read in (files.verify, files.read_verified):
            with pytest.raises(DamagedFileError, match="damaged"):
                read(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedFileError, match="damaged"):
            files.read_verified(path)


def test_leftovers_of_killed_writers_are_removed_by_age(tmp_path):
    (tmp_path / ".x.ckpt.abcd.part").touch()
    (tmp_path / "kept").touch()
    files.remove_partial(tmp_path, older_than_seconds=60)
    assert len(list(tmp_path.iterdir())) == 2
    files.remove_partial(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


def test_a_second_holder_is_refused_until_the_first_lets_go(tmp_path):
    path = tmp_path / "made" / "run.lock"
    with (
        exclusive(path, "busy here"),
        pytest.raises(UserError, match=r"^busy here$"),
        exclusive(path, "busy here"),
    ):
        pass
    with exclusive(path, "busy here"):
        assert path.exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UserError, match=r"file: cannot be made or written.*out_dir"),
        exclusive(tmp_path / "file" / "run.lock", ""),
    ):
        pass
