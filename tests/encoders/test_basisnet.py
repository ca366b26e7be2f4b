"""BasisNet: all equivariant maps, whole eigenspaces, no dependence on bases; one line where memory ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.encoding_cases import batch_of, encoder_config, graph, graphs, molecule, ring, undirected
from torch import Tensor

from graphgps_pearl import memory
from graphgps_pearl.encoders import FeatureEncoder, required_transforms
from graphgps_pearl.encoders.basisnet import BasisNet, Eigenspaces, MatrixLayer, Squares, VectorLayer
from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.transforms import laplacian_eigen
from graphgps_pearl.errors import DataError

STAR = undirected([(0, i) for i in range(1, 6)])
SHAPES = {
    "ring": [(ring(6), 6)],
    "star": [(STAR, 6)],
    "two components and a lone node": [(undirected([(0, 1), (1, 2), (3, 4)]), 6)],
    "tiny": [(undirected([]), 1), (undirected([(0, 1)]), 2)],
    "several": [(ring(8), 8), (molecule(9, 1), 9), (undirected([]), 3), (ring(3), 3)],
}


def eigen(shapes: list[tuple[Tensor, int]], max_freqs: int = 0) -> tuple[list[Tensor], list[Tensor], Pairs]:
    """Eigenvalues and float64 eigenvectors of every graph, and the rows of all."""
    pairs = [laplacian_eigen(edges, n, max_freqs=0) for edges, n in shapes]
    spectra = []
    for (edges, n), (values, _) in zip(shapes, pairs, strict=True):
        adjacency = torch.zeros(n, n, dtype=torch.float64)
        adjacency[edges[0], edges[1]] = 1
        root = adjacency.sum(1).clamp(min=1).rsqrt()
        exact = torch.linalg.eigh(torch.eye(n, dtype=torch.float64) - root[:, None] * adjacency * root)
        torch.testing.assert_close(exact.eigenvalues.clamp(min=0).float(), values)
        most = min(n, max_freqs or n)
        spectra.append((exact.eigenvalues[:most], exact.eigenvectors[:, :most]))
    batch = torch.repeat_interleave(torch.tensor([n for _, n in shapes]))
    rows = Pairs.of(batch, len(shapes), max_freqs or None)
    return [values for values, _ in spectra], [vectors for _, vectors in spectra], rows


def rotated(values: Tensor, vectors: Tensor) -> Tensor:
    """Another orthonormal basis of every eigenspace (and other signs)."""
    out = vectors.clone()
    for mu in values.round(decimals=6).unique():
        chosen = (values.round(decimals=6) == mu).nonzero().flatten()
        rotation = torch.linalg.qr(torch.randn(len(chosen), len(chosen), dtype=torch.float64)).Q
        out[:, chosen] = vectors[:, chosen] @ rotation
    return out


def network(**options: int) -> BasisNet:
    torch.manual_seed(0)
    return BasisNet(4, 6, 5, 2, 2, **options).double()


def flat(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_no_choice_of_bases_changes_it(shapes: list[tuple[Tensor, int]], training: bool) -> None:
    values, vectors, pairs = eigen(shapes)
    module = network().train(training)
    expected = module(flat(values), flat(vectors), pairs)
    for _ in range(3):
        others = [rotated(*both) for both in zip(values, vectors, strict=True)]
        torch.testing.assert_close(module(flat(values), flat(others), pairs), expected, atol=1e-6, rtol=0)
    assert torch.isfinite(expected).all()


def test_an_eigenspace_that_the_cut_splits_is_left_out() -> None:
    """A hexagon has the eigenvalues 0, 1/2, 1/2, 3/2, ...: of the two smallest only the first is whole."""
    values, vectors, pairs = eigen([(ring(6), 6), (ring(3), 3)], max_freqs=3)
    spaces = Eigenspaces.of(flat(values), pairs, limit=2)
    assert spaces.graph.tolist() == [0, 1] and spaces.dim.tolist() == [1, 1]
    module = network(limit=2).eval()
    others = [vectors[0].clone(), vectors[1]]
    others[0][:, 1:] = torch.randn(6, 2)
    torch.testing.assert_close(
        module(flat(values), flat(vectors), pairs), module(flat(values), flat(others), pairs)
    )
    whole = Eigenspaces.of(*(lambda v, _, p: (flat(v), p))(*eigen([(ring(6), 6)], max_freqs=4)), limit=3)
    assert whole.dim.tolist() == [1, 2]


def test_eigenvalues_are_equal_up_to_the_tolerance() -> None:
    pairs = Pairs.of(torch.zeros(5, dtype=torch.long), 1)
    spaces = Eigenspaces.of(torch.tensor([0.0, 1e-6, 1.0, 1.0 + 2e-6, 1.0 + 1e-3]), pairs)
    assert spaces.dim.tolist() == [2, 2, 1] and spaces.first.tolist() == [0, 2, 4]


@pytest.mark.parametrize(("layer", "maps"), [(MatrixLayer, 15), (VectorLayer, 5)])
def test_the_layers_are_all_equivariant_linear_maps(layer: Callable[..., torch.nn.Module], maps: int) -> None:
    """As many independent ones as there are (Bell numbers B(4), B(3)), each commuting with permutations."""
    module, squares = layer(1, 1, 1).double(), Squares.of(torch.tensor([5]))
    names = [name for name, _ in module.named_parameters() if "bias" not in name]
    x = torch.randn(25, 1, dtype=torch.float64)
    order = torch.randperm(5)
    moved = x.view(5, 5)[order][:, order].reshape(25, 1)
    columns = []
    for name in names:
        weight = module.get_parameter(name)
        for i in range(weight.numel()):
            for parameter in module.parameters():
                torch.nn.init.zeros_(parameter)
            weight.data.view(-1)[i] = 1
            out, other = module(x, squares, 0).detach(), module(moved, squares, 0).detach()
            expected = out.view(5, 5)[order][:, order] if maps == 15 else out.view(5)[order]
            torch.testing.assert_close(other.flatten(), expected.flatten())
            basis = [module(e[:, None], squares, 0).detach() for e in torch.eye(25, dtype=torch.float64)]
            columns.append(torch.cat(basis).flatten())
    assert len(columns) == maps == int(torch.linalg.matrix_rank(torch.stack(columns)))


def test_one_network_for_each_dimension_of_eigenspaces() -> None:
    values, vectors, pairs = eigen([(STAR, 6)])  # 0, four times 1, 2
    module = network(max_dim=2)
    module(flat(values), flat(vectors), pairs).square().sum().backward()
    assert all(bool(gradient.any()) for gradient in module.vectors.maps.grad)
    path = undirected([(i, i + 1) for i in range(4)])  # all eigenvalues are simple
    values, vectors, pairs = eigen([(path, 5)])
    module.zero_grad()
    module(flat(values), flat(vectors), pairs).square().sum().backward()
    assert [bool(gradient.any()) for gradient in module.vectors.maps.grad] == [True, False]


@pytest.mark.parametrize("name", ["BasisNet", "SPE", "SignNet"])
def test_too_many_eigenvectors_end_in_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10**9)
    sizes = {"SignNet": ("posenc_SignNet.phi_hidden_dim", 64), "SPE": ("posenc_SPE.post_hidden_dim", 64)}
    overrides = (f"posenc_{name}.eigen.max_freqs", 0, *sizes.get(name, ()))
    cfg = encoder_config(f"TypeDictNode+{name}", *overrides)
    encoder = FeatureEncoder(cfg, dim_in=1)
    nodes = 1000 if name != "BasisNet" else 300
    data = graph(ring(nodes), nodes, required_transforms(cfg))
    message = rf"posenc_{name}: .*{nodes} nodes, takes about \d.* GB, 1.0 GB are free: lower train.batch_size"
    with pytest.raises(DataError, match=message) as error:
        encoder(batch_of([data]))
    assert "\n" not in str(error.value) and ("max_freqs" in str(error.value)) == (name != "SPE")
    encoder(batch_of(graphs(required_transforms(cfg))))
