import errno
import json
import os
import random
from pathlib import Path
from typing import BinaryIO

import pytest
import torch

from graphgps_pearl import files
from graphgps_pearl.data import cache
from graphgps_pearl.errors import DataError


def test_keys_depend_on_every_part_and_on_nothing_else() -> None:
    parts = {"file": "abc", "transforms": ["A(k=1)"]}
    assert cache.key_of(parts) == cache.key_of(dict(reversed(parts.items())))
    assert cache.key_of(parts) != cache.key_of({**parts, "transforms": ["A(k=2)"]})


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.pt"
    cache.save({"x": torch.arange(3), "note": None}, file)
    state = cache.load(file)
    assert state is not None and torch.equal(state["x"], torch.arange(3))
    assert cache.load(file, ("x", "note")) is not None and cache.load(file, ("x", "y")) is None
    assert [path.name for path in file.parent.iterdir()] == ["a.pt"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"\x80\x04K\x01."])
def test_a_damaged_cache_is_no_cache(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.pt"
    file.write_bytes(content)
    assert cache.load(file) is None
    assert str(file) in caplog.text


def graphs_of(count: int) -> dict[str, object]:
    generator = torch.Generator().manual_seed(0)
    values = {"x": torch.randint(28, (count, 9), generator=generator), "y": torch.randn(count, 1)}
    return {"graphs": values, "skipped": [("a.csv", "line 3", "no atoms")], "splits": None}


@pytest.mark.parametrize("damage", ["bit", "page"])
def test_a_cache_with_a_wrong_bit_or_page_is_never_used(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    file, state, rng = tmp_path / "a.pt", graphs_of(500), random.Random(0)
    cache.save(state, file)
    whole, refused = file.read_bytes(), 0
    for _ in range(200):
        content, place = bytearray(whole), rng.randrange(len(whole))
        if damage == "bit":
            content[place] ^= 1 << rng.randrange(8)
        else:
            content[place : place + 4096] = bytes(len(content[place : place + 4096]))
        file.write_bytes(content)
        caplog.clear()
        found = cache.load(file, state)
        if found is None:
            refused += 1
            assert len(caplog.records) == 1 and "preparing again" in caplog.text
    assert refused == 200


def test_digests_see_every_value_type_shape_and_name() -> None:
    parts: list[object] = [
        *(None, 0, 0.0, False, "0", "", [], (), {}, [0], {"a": 0}, {"b": 0}, {"a": [0, [1]]}, {"a": [0, 1]}),
        *(torch.zeros(2), torch.zeros(2, 1), torch.zeros(1, 2), torch.zeros(2, dtype=torch.int32)),
        *(
            torch.zeros(8, dtype=torch.uint8),
            torch.zeros(2, dtype=torch.bool),
            torch.zeros(()),
            torch.ones(2),
        ),
    ]
    assert len({cache.digest(part) for part in parts}) == len(parts)
    assert cache.digest({"a": 1, "b": 2}) == cache.digest({"b": 2, "a": 1})
    assert cache.digest(torch.tensor([float("nan")])) == cache.digest(torch.tensor([float("nan")]))


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"a\.pt: the disk is full; free some space"):
        cache.save({"x": 1}, tmp_path / "a.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_that_torch_disguises_is_recognised(tmp_path: Path) -> None:
    def to_full_disk(_: BinaryIO) -> None:
        with Path("/dev/full").open("wb") as file:
            torch.save({"x": torch.zeros(100_000)}, file)

    with pytest.raises(DataError, match="disk is full"):
        cache.write(tmp_path / "a.pt", to_full_disk)


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
    known = json.loads(files.read_verified(memory))
    assert list(known.values()) == [first]
    files.write_verified(memory, json.dumps(dict.fromkeys(known, "remembered")))
    assert cache.checksum(file, memory) == "remembered"
    memory.write_text(memory.read_text().replace("remembered", "rememberee"))
    assert cache.checksum(file, memory) == first  # damaged, so not believed
    file.write_bytes(b"b" * (5 << 20))
    os.utime(file, ns=(1, 1))
    assert cache.checksum(file, memory) not in (first, "remembered")
    memory.write_text("{broken")
    assert cache.checksum(file, memory) != first


def test_checksums_need_no_folder_that_can_be_written(tmp_path: Path) -> None:
    file, blocked = tmp_path / "big", tmp_path / "blocked"
    file.write_bytes(b"a" * (5 << 20))
    blocked.write_text("a file where a folder would be")
    assert cache.checksum(file, blocked / "checksums.json") == cache.checksum(file)
