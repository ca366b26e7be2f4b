"""Precomputed quantities: right on awkward graphs, independent of padding, and keyed by every setting."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from helpers.encoding_cases import graphs, molecule, ring, undirected
from torch_geometric.data import Batch, Data
from torch_geometric.utils import get_laplacian, to_dense_adj, to_networkx

from graphgps_pearl.encoders.transforms import (
    EIGVEC_NORMS,
    AddLaplacianEigen,
    AddRandomWalkDiagonal,
    laplacian_eigen,
    normalise_eigenvectors,
    random_walk_diagonal,
)

LAPLACIANS = {"none": None, "sym": "sym", "rw": "rw"}


def pyg_laplacian(edge_index: torch.Tensor, n: int, norm: str) -> torch.Tensor:
    index, weight = get_laplacian(edge_index, None, LAPLACIANS[norm], torch.float64, n)
    return to_dense_adj(index, edge_attr=weight, max_num_nodes=n)[0]


@pytest.mark.parametrize("norm", ["none", "sym", "rw"])
@pytest.mark.parametrize("data", graphs(), ids=lambda data: f"n{data.num_nodes}")
def test_eigenpairs_solve_the_eigenvalue_equation(data: Data, norm: str) -> None:
    n = data.num_nodes
    values, vectors = laplacian_eigen(data.edge_index, n, norm, max_freqs=0)
    assert values.shape == (n,) and vectors.shape == (n, n)
    laplacian = pyg_laplacian(data.edge_index, n, norm)
    torch.testing.assert_close(laplacian @ vectors.double(), vectors.double() * values, atol=1e-5, rtol=0)
    assert torch.linalg.matrix_rank(vectors) == n
    assert (values >= 0).all() and (values.diff() >= -1e-6).all()


def test_zero_eigenvalues_count_the_components() -> None:
    two_rings = torch.cat([ring(4), ring(5) + 4], dim=1)
    for norm in ("none", "sym", "rw"):
        values, _ = laplacian_eigen(two_rings, 9, norm, max_freqs=0)
        assert (values == 0).sum() == 2, norm


@pytest.mark.parametrize("which", ["smallest", "largest"])
def test_both_ends_of_the_spectrum_come_in_order(which: str) -> None:
    edges = molecule(10, 3)
    every, _ = laplacian_eigen(edges, 10, max_freqs=0)
    values, vectors = laplacian_eigen(edges, 10, max_freqs=4, which=which)
    expected = every[:4] if which == "smallest" else every.flip(0)[:4]
    torch.testing.assert_close(values, expected)
    assert vectors.shape == (10, 4)


def test_a_graph_smaller_than_the_number_of_eigenvectors_has_all_of_its_own() -> None:
    values, vectors = laplacian_eigen(ring(3), 3, max_freqs=8)
    assert values.shape == (3,) and vectors.shape == (3, 3)


def test_directions_and_self_loops_do_not_matter() -> None:
    edges = molecule(8, 4)
    one_way = edges[:, edges[0] < edges[1]]
    looped = torch.cat([edges, torch.tensor([[2], [2]])], dim=1)
    for other in (one_way, looped):
        torch.testing.assert_close(laplacian_eigen(other, 8), laplacian_eigen(edges, 8))


@pytest.mark.parametrize("norm", EIGVEC_NORMS)
def test_eigenvector_norms_are_finite_and_scale_columns_only(norm: str) -> None:
    for data in graphs():
        _, vectors = laplacian_eigen(data.edge_index, data.num_nodes, eigvec_norm=norm, max_freqs=0)
        assert torch.isfinite(vectors).all()
        if norm != "wavelength-asin":
            _, plain = laplacian_eigen(data.edge_index, data.num_nodes, eigvec_norm="none", max_freqs=0)
            ratio = vectors.norm(dim=0) / plain.norm(dim=0)
            torch.testing.assert_close(vectors, plain * ratio, atol=1e-5, rtol=1e-5)


def test_eigenvector_norms_by_hand() -> None:
    vectors, values = torch.tensor([[3.0, 1.0], [-4.0, 0.0]]), torch.tensor([0.0, 4.0])
    expected = {
        "L1": [[3 / 7, 1], [-4 / 7, 0]],
        "L2": [[0.6, 1], [-0.8, 0]],
        "abs-max": [[0.75, 1], [-1, 0]],
        "wavelength": [[0.75 * np.pi / 2, np.pi / 4], [-np.pi / 2, 0]],
        "wavelength-asin": [[np.arcsin(0.75), np.pi / 4], [-np.pi / 2, 0]],
    }
    for norm, result in expected.items():
        torch.testing.assert_close(
            normalise_eigenvectors(vectors, values, norm), torch.tensor(result).float()
        )
    with pytest.raises(ValueError, match="eigvec_norm is 'L3'"):
        normalise_eigenvectors(vectors, values, "L3")


@pytest.mark.parametrize("data", graphs(), ids=lambda data: f"n{data.num_nodes}")
def test_return_probabilities_are_diagonals_of_powers(data: Data) -> None:
    n = data.num_nodes
    adjacency = nx.to_numpy_array(to_networkx(data), nodelist=range(n))
    degree = adjacency.sum(1, keepdims=True)
    walk = np.divide(adjacency, degree, out=np.zeros_like(adjacency), where=degree > 0)
    times = [1, 2, 3, 7, 12]
    expected = np.stack([np.diag(np.linalg.matrix_power(walk, t)) for t in times], axis=1)
    torch.testing.assert_close(
        random_walk_diagonal(data.edge_index, n, times), torch.tensor(expected).float()
    )


def test_the_walk_follows_the_direction_of_edges() -> None:
    cycle = torch.tensor([[0, 1, 2], [1, 2, 0]])
    assert random_walk_diagonal(cycle, 3, [1, 2, 3])[0].tolist() == [0, 0, 1]


def test_stored_attributes_collate_without_padding() -> None:
    transforms = [AddLaplacianEigen("A", "sym", "L2", 4), AddRandomWalkDiagonal("B", [1, 2])]
    data = graphs(transforms)
    batch = Batch.from_data_list(data)
    sizes = [d.num_nodes for d in data]
    assert batch.eigvals_A.shape == (sum(min(n, 4) for n in sizes),)
    assert batch.eigvecs_A.shape == (sum(n * min(n, 4) for n in sizes),)
    assert batch.pestat_B.shape == (sum(sizes), 2)
    for original, unpacked in zip(data, batch.to_data_list(), strict=True):
        assert torch.equal(original.eigvecs_A, unpacked.eigvecs_A)


def test_the_text_names_every_setting() -> None:
    settings = {
        "name": ["LapPE", "SPE"],
        "laplacian_norm": ["sym", "none"],
        "eigvec_norm": ["L2", "L1"],
        "max_freqs": [4, 5],
        "which": ["smallest", "largest"],
    }
    first = {key: values[0] for key, values in settings.items()}
    texts = {repr(AddLaplacianEigen(**first))}
    for key, values in settings.items():
        texts.add(repr(AddLaplacianEigen(**{**first, key: values[1]})))
    texts |= {repr(AddRandomWalkDiagonal("RWSE", times)) for times in ([1, 2], [1, 2, 3], range(1, 2))}
    assert len(texts) == 1 + len(settings) + 3
    assert all("version=" in text for text in texts)


def test_unknown_settings_list_the_choices() -> None:
    with pytest.raises(ValueError, match="laplacian_norm is 'lazy'; choose one of none, sym, rw"):
        AddLaplacianEigen("LapPE", "lazy", "L2", 4)
    with pytest.raises(ValueError, match="at least one time"):
        AddRandomWalkDiagonal("RWSE", [])


@pytest.mark.realdata
def test_real_molecules_are_finite_and_of_unit_length(shared_data) -> None:  # type: ignore[no-untyped-def]
    raw = np.load(shared_data / "zinc12k" / "train.npz")
    nodes, edges = raw["num_nodes"][:200], raw["num_edges"][:200]
    transforms = [AddLaplacianEigen("LapPE", "sym", "L2", 8), AddRandomWalkDiagonal("RWSE", range(1, 21))]
    ends = np.cumsum(edges)
    for n, end, count in zip(nodes, ends, edges, strict=True):
        rows = slice(end - count, end)
        index = torch.from_numpy(np.stack([raw["src"][rows], raw["dst"][rows]]).astype(np.int64))
        data = Data(edge_index=index, num_nodes=int(n))
        for transform in transforms:
            data = transform(data)
        lengths = data.eigvecs_LapPE.view(int(n), -1).norm(dim=0)
        torch.testing.assert_close(lengths, torch.ones_like(lengths))
        assert torch.isfinite(data.pestat_RWSE).all()


def test_no_edges_and_no_nodes_are_finite() -> None:
    for n in (0, 1, 3):
        values, vectors = laplacian_eigen(undirected([]), n)
        assert torch.isfinite(values).all() and vectors.shape == (n, n)
        assert (random_walk_diagonal(undirected([]), n, [1, 2]) == 0).all()
