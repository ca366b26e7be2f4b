"""The encoding of a large graph, block by block, is that of the module on the whole graph."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.utils import erdos_renyi_graph, to_undirected

from graphgps_pearl.cli import main
from graphgps_pearl.errors import UserError
from graphgps_pearl.inference.graph_files import Neighbours, Part
from graphgps_pearl.inference.large_graph import encode_large_graph
from graphgps_pearl.pearl import RPEARL

NODES = 150


@pytest.fixture(scope="module")
def edges() -> np.ndarray:
    """Directed edges, two of them equal, a self-loop, and nodes without any."""
    torch.manual_seed(0)
    some = erdos_renyi_graph(NODES - 5, 0.03, directed=True)
    return torch.cat((some, some[:, :1], torch.tensor([[3], [3]])), dim=1).numpy()


def module_of(**settings) -> RPEARL:
    torch.manual_seed(1)
    settings = {"dim_pe": 5, "num_samples": 6, "hidden_dim": 4, "num_layers": 2, **settings}
    module = RPEARL(**settings)
    for norm in module.modules():
        if isinstance(getattr(norm, "running_mean", None), torch.Tensor):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
    return module.eval()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"num_taps": 4, "gso": "sym_laplacian"},
        {"num_taps": 3, "gso": "random_walk", "norm": "layer", "skip": "sum"},
        {"num_taps": 3, "gso": "laplacian", "norm": "none", "skip": "none", "pool": "mean+std+max"},
        {"num_taps": 0, "gso": "adjacency", "distribution": "sobol", "num_eval_draws": 2, "scale": True},
        {"num_taps": 2, "gso": "sym_adjacency", "norm": "graph", "pool": "sum", "num_layers": 0},
        {"end": "linear", "num_layers": 3},
    ],
    ids=str,
)
def test_blocks_and_chunks_change_nothing(edges: np.ndarray, tmp_path: Path, settings: dict) -> None:
    module = module_of(**settings)
    expected = module(torch.from_numpy(edges), num_nodes=NODES).detach().numpy()
    for block, chunk in ((40, 1), (1000, 4)):
        out = tmp_path / f"{block}.npy"
        shares = list(encode_large_graph(module, edges, out, NODES, block=block, chunk=chunk))
        assert shares[-1] == 1.0 and shares == sorted(shares)
        np.testing.assert_allclose(np.load(out), expected, rtol=2e-4, atol=2e-5)
    assert {file.name for file in tmp_path.iterdir()} == {"40.npy", "1000.npy"}  # no scratch file is left


def test_an_output_that_is_not_complete_is_not_there(edges: np.ndarray, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    out.write_text("of before")
    work = encode_large_graph(module_of(), edges, out, NODES, block=40)
    next(work)
    work.close()  # as an interruption does
    assert [file.name for file in tmp_path.iterdir()] == ["out.npy"]
    assert out.read_text() == "of before"


def test_directed_edges_are_mentioned(edges: np.ndarray, tmp_path: Path, caplog) -> None:
    both = np.concatenate((edges, edges[::-1]), axis=1)
    for found, said in ((both, False), (edges, True)):
        caplog.clear()
        list(encode_large_graph(module_of(), found, tmp_path / "out.npy", NODES))
        assert ("--undirected" in caplog.text) == said


def test_the_command_counts_edges_in_both_directions(edges: np.ndarray, tmp_path: Path) -> None:
    once = edges[:, edges[0] < edges[1]]
    np.save(tmp_path / "edges.npy", once.T.astype(np.int32))
    words = ["dim_pe", "5", "num_samples", "4", "hidden_dim", "4", "num_layers", "2", "norm", "layer"]
    out = tmp_path / "out.npy"
    given = ["posenc_RPEARL.dim_pe", *words[1:]]  # with the name of the group or without it
    assert main(["encode-graph", str(tmp_path / "edges.npy"), "-o", str(out), "--undirected", *given]) == 0
    torch.manual_seed(0)
    from graphgps_pearl import config
    from graphgps_pearl.encoders.pearl import RPEARLNodeEncoder

    keys = [word if i % 2 else f"posenc_RPEARL.{word}" for i, word in enumerate(words)]
    settings = config.parse("seed: 0", keys).posenc_RPEARL
    torch.manual_seed(0)
    module = RPEARLNodeEncoder.build(settings, 5).eval()
    both = np.concatenate((once, once[::-1]), axis=1)
    expected = module(torch.from_numpy(both.copy()), num_nodes=int(once.max()) + 1).detach().numpy()
    np.testing.assert_allclose(np.load(out), expected, rtol=2e-4, atol=2e-5)
    assert torch.equal(to_undirected(torch.from_numpy(once)), to_undirected(torch.from_numpy(both.copy())))


@pytest.mark.parametrize("once", [[[0, 1, 2], [1, 2, 2]], [[0, 2], [0, 2]]])
def test_a_self_loop_is_one_edge_in_both_directions(once: list[list[int]], tmp_path: Path) -> None:
    module, edges = module_of(gso="laplacian", num_taps=3), torch.tensor(once)
    list(encode_large_graph(module, edges.numpy(), tmp_path / "out.npy", 3, undirected=True))
    expected = module(to_undirected(edges), num_nodes=3).detach().numpy()
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=2e-4, atol=2e-5)


def test_the_module_stays_as_it_was(edges: np.ndarray, tmp_path: Path) -> None:
    """Also in the middle of its training."""
    module = module_of().double().train()
    list(encode_large_graph(module, edges, tmp_path / "out.npy", NODES))
    assert module.training and all(p.dtype == torch.float64 for p in module.parameters())
    expected = module.eval()(torch.from_numpy(edges), num_nodes=NODES).detach().numpy()
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=2e-4, atol=2e-5)


def test_taps_that_grow_too_large_are_refused_as_they_are_on_small_graphs(tmp_path: Path) -> None:
    star = np.stack((np.zeros(5000, int), np.arange(1, 5001)))
    module = module_of(num_taps=9, gso="laplacian", num_samples=1)
    with pytest.raises(ValueError, match="the taps reach"):
        module(torch.from_numpy(np.concatenate((star, star[::-1]), axis=1)))
    with pytest.raises(UserError, match="the taps reach"):
        list(encode_large_graph(module, star, tmp_path / "out.npy", undirected=True))
    assert not any(tmp_path.iterdir())


def test_a_block_may_have_more_edges_than_32_bits_count() -> None:
    many = 2**31 + 5
    neighbours = Neighbours(
        np.array([0, many, many]), np.broadcast_to(np.int32(1), many), np.zeros(2, np.float32)
    )
    starts, sources = neighbours.rows(slice(0, 2))
    assert starts.tolist() == [0, many, many] and len(sources) == many


def test_processes_share_the_blocks() -> None:
    for world_size in (1, 2, 3, 7):
        parts = [list(Part(rank, world_size).blocks(95, 20)) for rank in range(world_size)]
        assert [(b.start, b.stop) for part in parts for b in part] == [
            *((i, i + 20) for i in range(0, 80, 20)),
            (80, 95),
        ]


@pytest.mark.slow
def test_two_processes_give_the_same_bits(edges: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "edges.npy", edges)
    settings = ["--block", "20", "num_taps", "3", "num_layers", "2", "num_samples", "3", "hidden_dim", "4"]
    found = []
    for start in ([], ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]):
        out = tmp_path / f"{len(found)}.npy"
        words = ["-m", "graphgps_pearl", "encode-graph", tmp_path / "edges.npy", "-o", out, *settings]
        done = subprocess.run([sys.executable, *start, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(np.load(out))
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("content", "words", "says"),
    [
        (np.zeros((2, 3)), [], "float64"),
        (np.zeros((3, 3), int), [], "[2, E]"),
        (np.array([[0, -1], [1, 2]]), [], "nodes -1 to 2"),
        (np.array([[0, 1], [1, 9]]), ["--num-nodes", "5"], "nodes 0 to 9"),
        (np.array([[0, 1], [1, 0]]), ["num_layer", "5"], "num_layers"),
        (np.array([[0, 1], [1, 0]]), ["tap_moments", "True"], "tap_moments needs num_taps"),
        (np.zeros((2, 0), int), [], "--num-nodes"),
        (np.array([[0, 1], [1, 0]]), ["--block", "0"], "--block 0: expected a whole number from 1 up"),
        (np.array([[0, 1], [1, 0]]), ["--chunk", "-1"], "--chunk -1: expected a whole number from 1 up"),
        (np.array([[0, 1], [1, 0]]), ["--model", "x", "num_layers", "5"], "--model"),
        (np.array([[0, 1], [1, 0]]), ["--num-nodes", "-1"], "-1 nodes"),
        (np.full((2, 3), -7), [], "nodes -7 to -7"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, capsys, content, words, says) -> None:
    np.save(tmp_path / "edges.npy", content)
    assert main(["encode-graph", str(tmp_path / "edges.npy"), "-o", str(tmp_path / "o.npy"), *words]) != 0
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and says in error[0]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space cannot be reserved")
@pytest.mark.parametrize("limit", [1000, 3000])  # bytes: the scratch files, and the output, do not fit
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, capsys, monkeypatch, limit) -> None:
    """Without space that is reserved, writing to a file in memory ends the process (SIGBUS)."""
    file, out = tmp_path / "edges.npy", tmp_path / "out" / "out.npy"
    np.save(file, np.array([[0, 1], [1, 0]]))
    reserve = os.posix_fallocate

    def full(descriptor: int, offset: int, length: int) -> None:
        if length > limit:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        reserve(descriptor, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", full)
    words = ["--num-nodes", "100", "dim_pe", "32", "num_samples", "1", "hidden_dim", "4", "num_layers", "1"]
    assert main(["encode-graph", str(file), "-o", str(out), *words]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and str(out.parent) in error[0] and "no space left" in error[0]
    assert not any(out.parent.iterdir())


def test_an_output_below_a_file_is_named(tmp_path: Path, capsys) -> None:
    file = tmp_path / "edges.npy"
    np.save(file, np.array([[0, 1], [1, 0]]))
    assert main(["encode-graph", str(file), "-o", str(file / "out.npy")]) == 2
    assert capsys.readouterr().err.strip() == f"error: -o {file / 'out.npy'}: {file} is no folder"


def test_the_edges_are_not_overwritten(tmp_path: Path, capsys) -> None:
    file = tmp_path / "edges.npy"
    np.save(file, np.array([[0, 1], [1, 0]]))
    assert main(["encode-graph", str(file), "-o", str(tmp_path / "." / "edges.npy")]) == 2
    assert "is the file of the edges; choose another name" in capsys.readouterr().err
    assert np.load(file).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("kind", ["empty", "archive", "text"])
def test_files_that_are_no_arrays_are_named(tmp_path: Path, capsys, kind: str) -> None:
    file = tmp_path / "edges.npy"
    file.write_text("0 1\n1 2\n" if kind == "text" else "")
    if kind == "archive":
        with file.open("wb") as stream:
            np.savez(stream, edges=np.zeros((2, 3), int))
    assert main(["encode-graph", str(file), "-o", str(tmp_path / "o.npy")]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and f"{file}: is no .npy array" in error[0]
