"""The authors' Φ from plain torch modules: with copied weights ours gives the same to 1e-10."""

from __future__ import annotations

import pytest
import torch
from helpers.graphs import molecule_like, random_graph
from torch import Tensor, nn
from torch_geometric.utils import get_laplacian, to_dense_adj

from graphgps_pearl.pearl import BPEARL
from graphgps_pearl.pearl.phi import GINLayer, TapLayer

GRAPHS = [(molecule_like(9), 9), (random_graph(6, seed=3), 6)]
WIDTH, DIM_PE, LAYERS, TAPS = 5, 3, 4, 3


class AuthorsPhi(nn.Module):
    """Taps of the normalised Laplacian, a linear map with batch norm over one graph at a time and ReLU; then
    GIN layers: linear, batch norm, ReLU, linear, and batch norm after all layers but the last. Biases
    everywhere, ε at random."""

    def __init__(self) -> None:
        super().__init__()
        widths = [WIDTH] * LAYERS + [DIM_PE]
        self.lift, self.lift_norm = nn.Linear(TAPS, WIDTH), nn.BatchNorm1d(WIDTH)
        self.eps = nn.ParameterList(torch.randn(1) for _ in range(LAYERS))
        self.inner = nn.ModuleList(nn.Linear(w, WIDTH) for w in widths[:-1])
        self.inner_norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(LAYERS))
        self.outer = nn.ModuleList(nn.Linear(WIDTH, w) for w in widths[1:])
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(LAYERS - 1))

    def forward(self) -> Tensor:
        pairs = []
        for edges, n in GRAPHS:
            index, weight = get_laplacian(edges, None, "sym", torch.float64, n)
            laplacian = to_dense_adj(index, edge_attr=weight, max_num_nodes=n)[0]
            powers = [torch.linalg.matrix_power(laplacian, k) for k in range(TAPS)]
            taps = torch.stack(powers, dim=-1).view(n * n, TAPS)
            pairs.append(torch.relu(self.lift_norm(self.lift(taps))))
        for i in range(LAYERS):
            z = [(1 + self.eps[i]) * x + self.neighbours(g, x) for g, x in enumerate(pairs)]
            x = self.outer[i](torch.relu(self.inner_norms[i](self.inner[i](torch.cat(z)))))
            x = self.norms[i](x) if i < LAYERS - 1 else x
            pairs = list(x.split([n * n for _, n in GRAPHS]))
        return torch.cat([x.view(n, n, -1).sum(1) for x, (_, n) in zip(pairs, GRAPHS, strict=True)])

    def neighbours(self, graph: int, x: Tensor) -> Tensor:
        edges, n = GRAPHS[graph]
        adjacency = to_dense_adj(edges, max_num_nodes=n)[0].double()
        return (adjacency @ x.view(n, -1)).view(n * n, -1)


def copied(theirs: AuthorsPhi) -> BPEARL:
    """Ours with their weights. A bias in front of a batch norm moves its running mean and nothing else."""
    ours = BPEARL(
        DIM_PE, WIDTH, LAYERS, TAPS, norm="graph", skip="none", end="linear", scale=False, quotient=False
    ).double()

    def norm(mine: nn.Module, other: nn.BatchNorm1d, bias: Tensor) -> None:
        mine.load_state_dict(other.state_dict(), strict=False)
        mine.running_mean -= bias

    with torch.no_grad():
        first, *gin = ours.phi.layers
        assert isinstance(first, TapLayer)
        first.weight.copy_(theirs.lift.weight.T[:, None])
        norm(first.norm, theirs.lift_norm, theirs.lift.bias)
        for i, layer in enumerate(gin):
            assert isinstance(layer, GINLayer)
            layer.eps.copy_(theirs.eps[i])
            layer.linears[0].weight.copy_(theirs.inner[i].weight)
            norm(layer.norms[0], theirs.inner_norms[i], theirs.inner[i].bias)
            layer.linears[1].weight.copy_(theirs.outer[i].weight)
            if i < LAYERS - 1:
                norm(layer.norms[1], theirs.norms[i], theirs.outer[i].bias)
            else:
                layer.linears[1].bias.copy_(theirs.outer[i].bias)
    return ours


@pytest.mark.parametrize("quotient", [False, True])
def test_copied_weights_give_the_authors_output(quotient: bool) -> None:
    torch.manual_seed(0)
    theirs = AuthorsPhi().double()
    for _ in range(3):
        theirs()  # running statistics move
    ours = copied(theirs)
    ours.quotient = quotient
    edges = torch.cat([GRAPHS[0][0], GRAPHS[1][0] + GRAPHS[0][1]], dim=1)
    batch = torch.repeat_interleave(torch.tensor([n for _, n in GRAPHS]))
    for training in (False, True):
        expected, result = theirs.train(training)(), ours.train(training)(edges, batch)
        torch.testing.assert_close(result, expected, atol=1e-10, rtol=0)
    result.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(ours.phi.layers[1].eps.grad, theirs.eps[0].grad, rtol=1e-9, atol=1e-10)
