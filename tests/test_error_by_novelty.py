"""scripts/error_by_novelty.py: which surroundings are new, and the error of those graphs."""

import importlib

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected


@pytest.fixture
def script(monkeypatch, request):
    monkeypatch.syspath_prepend(str(request.config.rootpath / "scripts"))
    return importlib.import_module("error_by_novelty")


def chain(*types: int, bond: int = 1) -> Data:
    """Atoms one after the other; the last bond has another type where it is given."""
    n = len(types)
    edges = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    edge_attr = torch.ones(n - 1).long()
    edge_attr[-1] = bond
    edge_index, edge_attr = to_undirected(edges, edge_attr, num_nodes=n)
    return Data(x=torch.tensor(types).view(-1, 1), edge_index=edge_index, edge_attr=edge_attr)


@pytest.mark.parametrize(("radius", "new"), [(0, 1), (1, 2), (2, 3)])
def test_a_new_atom_is_new_to_all_within_the_radius(script, radius, new):
    known = set(script.surroundings(chain(*[0] * 9), radius))
    shares = script.share_of_new([chain(*[0] * 9), chain(*[0] * 8, 7)], known, radius)
    assert shares.tolist() == pytest.approx([0, new / 9])


@pytest.mark.parametrize(("radius", "new"), [(0, 0), (1, 2), (2, 3)])
def test_so_is_a_new_bond(script, radius, new):
    known = set(script.surroundings(chain(*[0] * 9), radius))
    assert script.share_of_new([chain(*[0] * 9, bond=2)], known, radius).tolist() == pytest.approx([new / 9])


def test_surroundings_do_not_depend_on_the_order_of_atoms(script):
    forward, backward = chain(0, 1, 2, 3, bond=2), chain(3, 2, 1, 0)
    backward.edge_attr = torch.ones_like(backward.edge_attr)
    backward.edge_attr[(backward.edge_index < 2).all(dim=0)] = 2
    assert script.surroundings(forward, 2) == script.surroundings(backward, 2)[::-1]


def test_groups_have_all_graphs_and_their_errors(script):
    share, error = np.array([0, 0.05, 0.1, 0.5, 0]), np.array([1.0, 2.0, 4.0, 8.0, 3.0])
    assert list(script.table(share, error)) == [
        ("none", 2, 2.0),
        ("up to 10%", 2, 3.0),
        ("above 30%", 1, 8.0),
        ("all", 5, 3.6),
    ]


def test_a_shipped_model(script, capsys):
    script.main(["wehi-logp", "dataset.subset", "200", "--radius", "1"])
    printed = capsys.readouterr().out
    assert "different surroundings of radius 1" in printed
    assert printed.count(" all ") == 2


def test_labels_have_no_absolute_error(script, capsys):
    with pytest.raises(SystemExit):
        script.main(["peptides-func-bpearl"])
    assert "peptides-func-bpearl is no regression on graphs" in capsys.readouterr().err
