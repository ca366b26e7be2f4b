"""Archives give what was asked for, where it was asked for, and no more than is plausible."""

import gzip
import io
import shutil
import threading
import time
import zipfile
from pathlib import Path

import pytest

from graphgps_pearl import data
from graphgps_pearl.data import download
from graphgps_pearl.data.download import fetch_zip, unzip
from graphgps_pearl.errors import DataError
from graphgps_pearl.unpacking import open_gzip


def write_zip(file: Path, members: dict[str, bytes]) -> Path:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    file.write_bytes(packed.getvalue())
    return file


def test_archives_give_the_named_members_only(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"molecules/train.pickle": b"train", "../../escaped": b"bad"})
    unzip(archive, {"molecules/train.pickle": tmp_path / "raw" / "train.pickle"}, 100)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.zip", "raw", "train.pickle"]
    with pytest.raises(DataError, match=r"a\.zip: has no file .*val\.pickle"):
        unzip(archive, {"molecules/val.pickle": tmp_path / "val.pickle"}, 100)


def test_a_damaged_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK not a zip")
    with pytest.raises(DataError, match=r"a\.zip: is damaged"):
        unzip(tmp_path / "a.zip", {"x": tmp_path / "x"}, 100)
    whole = write_zip(tmp_path / "a.zip", {"x": bytes(range(256)) * 40}).read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0x41
        (tmp_path / "a.zip").write_bytes(damaged)
        try:
            unzip(tmp_path / "a.zip", {"x": tmp_path / "x"}, 1 << 20)
        except DataError as error:
            assert str(error).isprintable()
        else:
            assert (tmp_path / "x").read_bytes() == bytes(range(256)) * 40


def test_an_archive_that_unpacks_to_too_much_leaves_nothing(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"x": bytes(600), "y": bytes(600)})
    with pytest.raises(DataError, match=r"a\.zip: unpacks to more than"):
        unzip(archive, {"x": tmp_path / "raw" / "x", "y": tmp_path / "raw" / "y"}, 1000)
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["x"]


def test_two_processes_may_fetch_the_same_archive_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = write_zip(tmp_path / "public.zip", {"x": b"train"})
    fetched, both_have_it = [], threading.Barrier(2)

    def fetch(url: str, archive: Path, known: str | None) -> None:
        fetched.append(url)
        archive.parent.mkdir(exist_ok=True)
        shutil.copy(public, archive)
        try:
            both_have_it.wait(timeout=0.5)
        except threading.BrokenBarrierError:  # the other one waits for this one to end
            both_have_it.reset()

    monkeypatch.setattr(download, "fetch_file", fetch)
    failures: list[Exception] = []

    def work() -> None:
        try:
            fetch_zip(
                "https://a/b.zip", tmp_path / "data" / "b.zip", None, {"x": tmp_path / "data" / "x"}, 100
            )
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert fetched == ["https://a/b.zip"]  # once
    assert (tmp_path / "data" / "x").read_bytes() == b"train"
    assert not (tmp_path / "data" / "b.zip").exists()


def bomb(file: Path, megabytes: int) -> Path:
    with gzip.open(file, "wb") as packed:
        for _ in range(megabytes):
            packed.write(bytes(1 << 20))
    return file


def test_a_gzip_bomb_ends_in_one_line_and_bounded_memory(make_cfg, tmp_path: Path) -> None:
    file = bomb(tmp_path / "a.csv.gz", 100)
    assert file.stat().st_size < 1 << 20
    with open_gzip(file) as stream, pytest.raises(DataError, match=r"a\.csv\.gz: unpacks to more than 67 MB"):
        while stream.read(1 << 20):
            pass
    began = time.perf_counter()
    with pytest.raises(DataError, match="unpacks to more than"):
        data.load(make_cfg("csv", "mine", path=file, split_mode="random"))
    json_file = tmp_path / "lbap_core_ic50_assay.json.gz"
    file.rename(json_file)
    words = {"path": json_file, "task_type": "classification_binary"}
    with pytest.raises(DataError, match="unpacks to more than"):
        data.load(make_cfg("DrugOOD", "lbap_core_ic50_assay", **words))
    assert time.perf_counter() - began < 30
