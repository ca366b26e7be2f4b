"""Hostile and broken data: each file is refused in one line, in bounded time and memory."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import resource
import shutil
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attacks.damage import damage
from attacks.tally import Tally
from graphgps_pearl import config, data
from graphgps_pearl.data.download import unzip

_SPLITS = ("train", "val", "test")
_MOST_MEMORY = 4 << 30  # of address space beyond what the process has: enough for all that is sound

Write = Callable[[Path], object]


class _Call:
    """Pickles to a call."""

    def __init__(self, function: Callable[..., Any], *args: object) -> None:
        self.call = (function, args)

    def __reduce__(self) -> Any:
        return self.call


def molecule(**changed: object) -> dict[str, object]:
    """One molecule as ZINC's files have it."""
    bonds = torch.zeros(3, 3, dtype=torch.long)
    bonds[0, 1] = bonds[1, 0] = bonds[1, 2] = bonds[2, 1] = 1
    target = torch.tensor([0.5])
    return {
        "atom_type": torch.tensor([0, 1, 2]),
        "bond_type": bonds,
        "logP_SA_cycle_normalized": target,
    } | changed


def zinc(content: bytes | None = None, **changed: object) -> Write:
    """ZINC's raw files, of which ``train.pickle`` is hostile."""

    def write(folder: Path) -> None:
        sound = pickle.dumps([molecule() for _ in range(4)])
        for split in _SPLITS:
            (folder / f"{split}.pickle").write_bytes(sound)
            (folder / f"{split}.index").write_text("0,1,2\n")
        hostile = pickle.dumps([molecule(**changed), *(molecule() for _ in range(3))])
        (folder / "train.pickle").write_bytes(hostile if content is None else content)

    return write


def expanded(size: tuple[int, ...], stride: tuple[int, ...]) -> _Call:
    """A tensor of four numbers that says it has another shape."""
    storage = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # typed storages are deprecated, and in the public files
        torch.save(torch.arange(4).storage(), storage, _use_new_zipfile_serialization=False)
    inner = _Call(torch.storage._load_from_bytes, storage.getvalue())
    return _Call(torch._utils._rebuild_tensor_v2, inner, 0, size, stride, False, OrderedDict())


def csv_file(text: str | bytes, name: str = "mine.csv") -> Write:
    """A table of the user's own."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return lambda folder: (folder / name).write_bytes(content)


def packed(content: bytes, name: str) -> Write:
    """A gzip file."""
    return lambda folder: (folder / name).write_bytes(gzip.compress(content))


def zip_bomb(folder: Path) -> None:
    """An archive of a few kilobytes that unpacks to 100 MB; it is unpacked here."""
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", bytes(100 << 20))
    unzip(folder / "a.zip", {"x": folder / "x"}, 1 << 20)


_HUGE = torch.tensor([1e300], dtype=torch.double)
_NESTED = b"\x80\x02})" + b"\x85" * 300_000 + b"Ns."
_ROWS = "".join(f"{'C' * (i + 1)},{i}\n" for i in range(12))
_NUMBERS = json.dumps({"split": {s: [1] for s in ("train", "iid_val", "iid_test", "ood_val", "ood_test")}})
_DRUGOOD = ("DrugOOD", "lbap_core_ic50_assay")

#: What it is -> (dataset.format, dataset.name, the file or folder, how to write it)
CASES: dict[str, tuple[str, str, str, Write]] = {
    **{
        f"ZINC: {name}": ("PyG-ZINC", "subset", "", write)
        for name, write in {
            "tuples nested 300,000 deep": zinc(_NESTED),
            "tuples nested by marks": zinc(b"\x80\x02}" + b"(" * 200_000 + b"N" + b"t" * 200_000 + b"Ns."),
            "a memo of two billion": zinc(b"\x80\x02]r\xff\xff\xff\x7f."),
            "a string of a terabyte": zinc(b"\x80\x04\x8e\xff\xff\xff\xff\xff\x00\x00\x00]."),
            "a call of os.system": zinc(pickle.dumps([_Call(eval, "1")])),
            "strides of zero": zinc(bond_type=expanded((1 << 20, 1 << 20), (0, 0))),
            "strides of zero, atoms": zinc(atom_type=expanded((1 << 40,), (0,))),
            "a negative size": zinc(atom_type=expanded((-1,), (1,))),
            "a view beyond its bytes": zinc(atom_type=expanded((4,), (1 << 40,))),
            "an atom of type 99": zinc(atom_type=torch.tensor([0, 1, 99])),
            "an atom of type -1": zinc(atom_type=torch.tensor([0, -1, 2])),
            "a bond of type 7": zinc(bond_type=7 * molecule()["bond_type"]),  # type: ignore[operator]
            "an infinite target": zinc(logP_SA_cycle_normalized=torch.tensor([float("inf")])),
            "a target beyond float32": zinc(logP_SA_cycle_normalized=_HUGE),
            "no atoms": zinc(atom_type=torch.zeros(0), bond_type=torch.zeros(0, 0)),
            "another size of bonds": zinc(bond_type=torch.zeros(2, 2)),
            "a number for a molecule": zinc(pickle.dumps([1, 2, 3, 4])),
        }.items()
    },
    **{
        f"table: {name}": ("csv", "mine", file, write)
        for name, (file, write) in {
            "a label beyond float32": ("mine.csv", csv_file("smiles,y\nCCO,1e300\n" + _ROWS)),
            "an infinite label": ("mine.csv", csv_file("smiles,y\nCCO,inf\n" + _ROWS)),
            "no molecule": ("mine.csv", csv_file("smiles,y\nnot one,1\n" + _ROWS)),
            "zeros": ("mine.csv", csv_file(bytes(1000))),
            "a terminal's escape sequence": ("mine.csv", csv_file("smiles,y\n\x1b[2J,1\n" + _ROWS)),
            "another encoding": ("mine.csv", csv_file("smiles,y\nCCÖ,1\n".encode("latin-1"))),
            "only a header": ("mine.csv", csv_file("smiles,y\n")),
            "nothing": ("mine.csv", csv_file("")),
            "a gzip bomb": ("mine.csv.gz", packed(b"smiles,y\n" + bytes(100 << 20), "mine.csv.gz")),
            "a cut gzip": ("mine.csv.gz", csv_file(gzip.compress(b"smiles,y\n" * 999)[:40], "mine.csv.gz")),
            "no gzip": ("mine.csv.gz", csv_file("smiles,y\n", "mine.csv.gz")),
        }.items()
    },
    **{
        f"DrugOOD: {name}": (*_DRUGOOD, file, write)
        for name, (file, write) in {
            "nested deeply": ("a.json", csv_file("[" * 200_000, "a.json")),
            "a gzip bomb": ("a.json.gz", packed(bytes(100 << 20), "a.json.gz")),
            "rows that are numbers": ("a.json", csv_file(_NUMBERS, "a.json")),
            "a list": ("a.json", csv_file("[]", "a.json")),
        }.items()
    },
    "an archive that unpacks to 100 MB": ("", "", "", zip_bomb),
}


def use(case: tuple[str, str, str, Write], folder: Path) -> bool:
    """Write a case's files and load them; False if that goes through."""
    data_format, name, file, write = case
    write(folder)
    if data_format:
        task = "classification_binary" if data_format == "DrugOOD" else "regression"
        words = {
            "format": data_format,
            "name": name,
            "path": folder / file,
            "dir": folder / "datasets",
            "task": "graph",
            "task_type": task,
            "check_totals": False,
            "split_mode": "random" if data_format == "csv" else "standard",
            "node_encoder": True,
            "edge_encoder": True,
        }
        if data_format == "PyG-ZINC":
            words |= {"node_encoder_name": "TypeDictNode", "node_encoder_num_types": 28}
            words |= {"edge_encoder_name": "TypeDictEdge", "edge_encoder_num_types": 4}
        else:
            words |= {"node_encoder_name": "Atom", "edge_encoder_name": "Bond"}
        pairs = [word for key, value in words.items() for word in (f"dataset.{key}", str(value))]
        loss = "l1" if task == "regression" else "cross_entropy"
        data.load(config.parse("seed: 0", [*pairs, "model.loss_fun", loss]))
    return False


def attack(scratch: Path) -> Tally:
    """Every case, with so much memory and no more."""
    tally = Tally("hostile data files")
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MOST_MEMORY, before[1]))
    try:
        for name, case in CASES.items():
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            tally.attempt(name, lambda case=case: use(case, scratch))  # type: ignore[misc]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    return tally


def attack_public(count: int, seed: int, scratch: Path) -> Tally:
    """One wrong bit in a public pickle: it is read, or ends in one line. That what it says is right cannot be
    known here (downloads have checksums), so nothing counts as silent."""
    tally, rng = Tally("flips in public pickles (no traceback)"), random.Random(f"{seed} public")
    for number in range(count):
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)

        def read() -> bool:
            case = ("PyG-ZINC", "subset", "", zinc(damage(pickle.dumps([molecule() for _ in range(4)]), rng)))
            return not use(case, scratch)

        tally.attempt(f"number {number}, seed {seed}", read)
    return tally
