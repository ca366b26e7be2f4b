import errno
import json
import os
import pickle
from pathlib import Path

import pytest
import torch

from graphgps_pearl.data import cache
from graphgps_pearl.errors import DataError


class Payload:
    """Pickles to a call that leaves a file behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def test_keys_depend_on_every_part_and_on_nothing_else() -> None:
    parts = {"file": "abc", "transforms": ["A(k=1)"]}
    assert cache.key_of(parts) == cache.key_of(dict(reversed(parts.items())))
    assert cache.key_of(parts) != cache.key_of({**parts, "transforms": ["A(k=2)"]})


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.pt"
    cache.save({"x": torch.arange(3), "note": None}, file)
    state = cache.load(file)
    assert state is not None and torch.equal(state["x"], torch.arange(3))
    assert [path.name for path in file.parent.iterdir()] == ["a.pt"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"\x80\x04K\x01."])
def test_a_damaged_cache_is_no_cache(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.pt"
    file.write_bytes(content)
    assert cache.load(file) is None
    assert str(file) in caplog.text


@pytest.mark.parametrize("zipped", [True, False])
def test_a_malicious_cache_is_refused_and_does_not_run(tmp_path: Path, zipped: bool) -> None:
    file, mark = tmp_path / "a.pt", tmp_path / "ran"
    if zipped:
        torch.save({"graphs": Payload(mark)}, file)
    else:
        file.write_bytes(pickle.dumps(Payload(mark)))
    assert cache.load(file) is None
    assert not mark.exists()


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.pt"
    cache.save({"x": 1}, file)
    with pytest.raises(KeyboardInterrupt), cache.atomic_file(file) as half:
        half.write(b"half")
        raise KeyboardInterrupt
    assert cache.load(file) == {"x": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"a\.pt: the disk is full; free some space"):
        cache.save({"x": 1}, tmp_path / "a.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_that_torch_disguises_is_recognised(tmp_path: Path) -> None:
    full, target = Path("/dev/full"), tmp_path / "a.pt"
    with pytest.raises(DataError, match="disk is full"), cache.atomic_file(target), full.open("wb") as file:
        torch.save({"x": torch.zeros(100_000)}, file)


def test_leftovers_of_killed_processes_go_after_a_day(tmp_path: Path) -> None:
    old, young = tmp_path / ".a.pt.1.part", tmp_path / ".a.pt.2.part"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    cache.save({"x": 1}, tmp_path / "a.pt")
    assert not old.exists() and young.exists()


def test_checksums_are_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file, memory = tmp_path / "big", tmp_path / "checksums.json"
    file.write_bytes(b"a" * (5 << 20))
    first = cache.checksum(file, memory)
    assert list(json.loads(memory.read_text()).values()) == [first]
    memory.write_text(json.dumps(dict.fromkeys(json.loads(memory.read_text()), "remembered")))
    assert cache.checksum(file, memory) == "remembered"
    file.write_bytes(b"b" * (5 << 20))
    os.utime(file, ns=(1, 1))
    assert cache.checksum(file, memory) not in (first, "remembered")
    memory.write_text("{broken")
    assert cache.checksum(file, memory) != first
