import io
import os
import pickle
import subprocess
import tracemalloc
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphgps_pearl.data.pickled_tensors import PickledTensor
from graphgps_pearl.data.pickles import decode, read_index_lists, read_pickle, require_own_bytes
from graphgps_pearl.errors import DataError


class Call:
    """Pickles to a call of ``function``."""

    def __init__(self, function: object, *args: object) -> None:
        self.call = (function, args)

    def __reduce__(self) -> object:
        return self.call


def tensor_of(payload: bytes, size: int = 1, stride: int = 1) -> Call:
    """Pickles to a tensor whose storage is read from these bytes."""
    inner = Call(torch.storage._load_from_bytes, payload)
    return Call(torch._utils._rebuild_tensor_v2, inner, 0, (size,), (stride,), False, OrderedDict())


def four_numbers() -> bytes:
    storage = io.BytesIO()
    torch.save(torch.arange(4).storage(), storage, _use_new_zipfile_serialization=False)
    return storage.getvalue()


def write(path: Path, content: object) -> Path:
    path.write_bytes(pickle.dumps(content))
    return path


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.uint8, torch.bool, torch.float32, torch.float64]
)
def test_tensors_come_back(tmp_path: Path, dtype: torch.dtype) -> None:
    whole = torch.arange(12).reshape(3, 4).to(dtype)
    tensors = {
        "whole": whole,
        "view": whole[1:, ::2],
        "turned": whole.t(),
        "none": whole[:0],
        "one": whole[0, 1],
    }
    path = write(tmp_path / "a.pickle", [OrderedDict(tensors), 3, "text"])
    (found, number, text) = read_pickle(path)
    assert (number, text) == (3, "text")
    for name, tensor in tensors.items():
        read = decode(found[name], path, name)
        assert read.dtype == dtype and torch.equal(read, tensor), name


def test_tensors_whose_bytes_are_in_the_zip_format_come_back(tmp_path: Path) -> None:
    storage = io.BytesIO()
    torch.save(torch.storage.TypedStorage([0, 1, 2, 3, 4, 5], dtype=torch.int64), storage)
    path = write(tmp_path / "a.pickle", [tensor_of(storage.getvalue(), size=3, stride=2)])
    assert decode(read_pickle(path)[0], path, "it").tolist() == [0, 2, 4]


def test_arrays_come_back(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pickle", {"train": np.arange(5), "x": np.ones((2, 2), dtype=np.float32)})
    found = read_pickle(path)
    assert torch.equal(decode(found["train"], path, "train"), torch.arange(5))
    assert torch.equal(decode(found["x"], path, "x"), torch.ones(2, 2))


def test_what_is_not_on_the_list_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    hostile = [
        Call(os.mkdir, str(mark)),
        Call(os.system, f"mkdir {mark}"),
        Call(subprocess.check_call, ["mkdir", str(mark)]),
        Call(eval, f"__import__('os').mkdir({str(mark)!r})"),
        Call(getattr, "".__class__, "mro"),
        np.array([Call(os.mkdir, str(mark))], dtype=object),
    ]
    for content in hostile:
        path = write(tmp_path / "a.pickle", [content])
        with pytest.raises(DataError, match=r"a\.pickle: no pickle of a dataset \("):
            read_pickle(path)
        assert not mark.exists()


@pytest.mark.parametrize("kind", ["old format", "plain pickle", "zip format"])
def test_a_payload_in_a_tensors_inner_bytes_is_not_run(tmp_path: Path, kind: str) -> None:
    mark, payload = tmp_path / "ran", io.BytesIO()
    if kind == "plain pickle":
        payload.write(pickle.dumps(Call(os.mkdir, str(mark))))
    else:
        torch.save(Call(os.mkdir, str(mark)), payload, _use_new_zipfile_serialization=kind == "zip format")

    path = write(tmp_path / "a.pickle", [tensor_of(payload.getvalue())])
    with pytest.raises(DataError, match="the tensor cannot be read"):
        decode(read_pickle(path)[0], path, "the tensor")
    assert not mark.exists()
    # The test is worth something: the ordinary reader does run it.
    with pytest.raises((TypeError, AttributeError, RuntimeError)):
        pickle.loads(path.read_bytes())
    assert mark.exists()


@pytest.mark.parametrize(("size", "stride"), [(1000, 1), (4, 1 << 40), (-1, 1)])
def test_a_view_beyond_its_storage_is_refused(tmp_path: Path, size: int, stride: int) -> None:
    path = write(tmp_path / "a.pickle", [tensor_of(four_numbers(), size, stride)])
    with pytest.raises(DataError, match=r"a\.pickle: "):
        decode(read_pickle(path)[0], path, "it")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_pickles_are_one_line(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(pickle.dumps([{"atom_type": torch.arange(3), "rows": np.arange(3)}]))
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        whole = whole[:place]
    else:
        whole[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "a.pickle"
    path.write_bytes(whole)
    try:
        content = read_pickle(path)
        if isinstance(content, list) and content and isinstance(content[0], dict):
            for value in content[0].values():
                decode(value, path, "it")
    except DataError as error:
        assert len(str(error).splitlines()) == 1 and str(path) in str(error)


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\x00\x00\x00].",  # a string of a terabyte
        b"\x80\x05\x96\xff\xff\xff\xff\xff\x00\x00\x00].",  # a bytearray of a terabyte
        b"\x80\x02cos\nmkdir",  # a name that does not end
    ],
)
def test_streams_that_ask_for_more_than_there_is_are_refused(tmp_path: Path, bomb: bytes) -> None:
    (tmp_path / "a.pickle").write_bytes(bomb)
    with pytest.raises(DataError, match=r"a\.pickle: no pickle of a dataset"):
        read_pickle(tmp_path / "a.pickle")


@pytest.mark.parametrize(
    "stream",
    [
        b"\x80\x02]r\xff\xff\xff\x7f.",  # a memo of two billion places
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x00].",  # a frame of 2^56 bytes
    ],
)
def test_numbers_that_ask_for_memory_get_none(tmp_path: Path, stream: bytes) -> None:
    (tmp_path / "a.pickle").write_bytes(stream)
    tracemalloc.start()
    assert read_pickle(tmp_path / "a.pickle") == []
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "stream",
    [
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nN}X\x05\x00\x00\x00numelNs\x86b.",  # of a class
        b"\x80\x02ccollections\nOrderedDict\n}X\x01\x00\x00\x00aNsb.",  # of a function
        b"\x80\x02]}X\x01\x00\x00\x00aNsb.",
    ],
)
def test_what_stands_for_a_name_cannot_be_changed(tmp_path: Path, stream: bytes) -> None:
    """Python's BUILD would set attributes of our own classes."""
    numel = PickledTensor.numel
    (tmp_path / "a.pickle").write_bytes(stream)
    with pytest.raises(DataError, match="gives a state to what has none"):
        read_pickle(tmp_path / "a.pickle")
    assert PickledTensor.numel is numel


def test_split_files(tmp_path: Path) -> None:
    path = write(tmp_path / "s.pickle", {"train": np.array([0, 2]), "val": [1], "test": np.array([3])})
    assert read_index_lists(path, ("train", "val", "test")) == {"train": [0, 2], "val": [1], "test": [3]}
    for wrong in ([1, 2], {"train": [0]}, {"train": ["a"], "val": [1], "test": [2]}):
        with pytest.raises(DataError, match=r"s\.pickle: "):
            read_index_lists(write(path, wrong), ("train", "val", "test"))


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.pickle: cannot be read \(No such file"):
        read_pickle(tmp_path / "none.pickle")


NESTED = [
    b"\x80\x02})" + b"\x85" * 300_000 + b"Ns.",
    b"\x80\x02})" + b"\x85q\x00" * 300_000 + b"Ns.",
    b"\x80\x02}" + b"(" * 200_000 + b"N" + b"t" * 200_000 + b"Ns.",
    b"\x80\x04}N\x94" + b"\x85\x94h\x01" * 100 + b"Ns.",
]


@pytest.mark.parametrize("stream", NESTED)
def test_nesting_that_would_overflow_the_stack_is_refused(tmp_path: Path, stream: bytes) -> None:
    """Hashing tuples in tuples as a dict's key recurses in C: the first of these killed the interpreter."""
    (tmp_path / "a.pickle").write_bytes(stream)
    with pytest.raises(DataError, match=r"a\.pickle: no pickle of a dataset"):
        read_pickle(tmp_path / "a.pickle")


def test_nesting_of_ordinary_depth_is_read(tmp_path: Path) -> None:
    content = {"a": [(1, (2, (3, (4,)))), {"b": [[[[[[5]]]]]]}], 7: None}
    assert read_pickle(write(tmp_path / "a.pickle", content)) == content


def test_a_tensor_larger_than_its_bytes_is_refused_before_it_is_made(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pickle", [tensor_of(four_numbers(), 1 << 40, 0)])
    assert path.stat().st_size < 2000
    with pytest.raises(DataError, match="larger than its bytes"):
        decode(read_pickle(path)[0], path, "it")
    with pytest.raises(DataError, match="more elements than the file has bytes"):
        require_own_bytes(read_pickle(path), path)


def test_one_tensor_named_many_times_is_refused_before_it_is_made(tmp_path: Path) -> None:
    tensor = torch.zeros(10_000)
    path = write(tmp_path / "a.pickle", [{"atoms": tensor} for _ in range(1000)])
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="more elements than the file has bytes"):
        require_own_bytes((held["atoms"] for held in read_pickle(path)), path)
    require_own_bytes([tensor], path)


def test_packed_bytes_of_a_tensor_that_unpack_to_much_are_refused(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", bytes(50 << 20))
    path = write(tmp_path / "a.pickle", [tensor_of(packed.getvalue())])
    with pytest.raises(DataError, match="unpack to more"):
        decode(read_pickle(path)[0], path, "it")


def test_an_array_that_python_2_wrote(tmp_path: Path) -> None:
    file = tmp_path / "array.pickle"
    file.write_bytes(
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K\x02\x85"
        b"cnumpy\ndtype\nU\x02i4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        b"U\x08\x01\x00\x00\x00\xff\x00\x00\x00tb."
    )
    assert decode(read_pickle(file), file, "it").tolist() == [1, 255]
