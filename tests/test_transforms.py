import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import FakeDataset

from graphgps_pearl import AddPEARL
from graphgps_pearl.pearl import BPEARL, RPEARL
from graphgps_pearl.testing import assert_batch_invariant, assert_equivariant

RING = torch.tensor([[0, 1, 2, 3, 4, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 0, 1, 2, 3, 4]])
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def graphs() -> list[Data]:
    return [Data(edge_index=RING, num_nodes=5), Data(edge_index=PATH, num_nodes=4)]


def basis() -> BPEARL:
    torch.manual_seed(0)
    return BPEARL(dim_pe=6, hidden_dim=8, num_layers=2, num_taps=3).double()


def test_what_is_stored_is_the_encoding_in_evaluation_and_carries_no_gradient():
    encoding = basis()
    stored = AddPEARL(encoding)(graphs()[1]).pearl_pe
    assert not stored.requires_grad
    with torch.no_grad():  # with gradients another kernel computes it, equal to rounding
        assert torch.equal(stored, encoding.eval()(graphs()[1]))


def test_nodes_renamed_or_batched_have_the_same_encoding():
    transform = AddPEARL(basis())
    assert_equivariant(lambda data: transform(data).pearl_pe, graphs()[1])
    assert_batch_invariant(lambda data: transform(data).pearl_pe, graphs())


def test_training_the_module_further_changes_nothing_that_is_stored_later():
    encoding = basis()
    transform = AddPEARL(encoding)
    before = transform(graphs()[0]).pearl_pe
    with torch.no_grad():
        for weight in encoding.parameters():
            weight.mul_(2)
    encoding.train()(Batch.from_data_list(graphs()))
    assert torch.equal(transform(graphs()[0]).pearl_pe, before)
    assert encoding.training


def test_repr_tells_weights_apart_because_pyg_compares_it():
    torch.manual_seed(1)
    other = BPEARL(dim_pe=6, hidden_dim=8, num_layers=2, num_taps=3).double()
    assert repr(AddPEARL(basis())) == repr(AddPEARL(basis()))
    assert repr(AddPEARL(basis())) != repr(AddPEARL(other))
    assert repr(AddPEARL(basis().bfloat16())) != repr(AddPEARL(basis()))


def test_repr_tells_samples_apart():
    def samples(seed: int) -> AddPEARL:
        torch.manual_seed(0)
        return AddPEARL(RPEARL(dim_pe=4, hidden_dim=8, num_samples=5, eval_seed=seed))

    assert not torch.equal(samples(0)(graphs()[0]).pearl_pe, samples(7)(graphs()[0]).pearl_pe)
    assert repr(samples(0)) != repr(samples(7))


@pytest.mark.parametrize(
    ("x", "columns", "dtype"),
    [
        (None, 6, torch.float64),
        (torch.ones(4, 2), 8, torch.float32),
        (torch.ones(4), 7, torch.float32),
        (torch.ones(4, 2, dtype=torch.long), 8, torch.float64),
    ],
)
def test_without_a_name_the_encoding_is_appended_to_the_features(x, columns, dtype):
    data = graphs()[1]
    data.x = x
    out = AddPEARL(basis(), attr_name=None)(data).x
    assert out.shape == (4, columns)
    assert out.dtype == dtype


def test_a_dataset_takes_it_and_workers_can_receive_it():
    transform = pickle.loads(pickle.dumps(AddPEARL(RPEARL(dim_pe=4, hidden_dim=8, num_samples=5), "pe")))
    dataset = FakeDataset(num_graphs=3, avg_num_nodes=6, transform=transform)
    assert all(data.pe.shape == (data.num_nodes, 4) for data in dataset)
    assert torch.equal(dataset[0].pe, dataset[0].pe)


def test_other_modules_are_refused_by_name():
    with pytest.raises(ValueError, match=r"BPEARL.*RPEARL.*Linear"):
        AddPEARL(torch.nn.Linear(1, 1))


def test_pairs_that_the_module_returns_are_not_stored():
    encoding = basis()
    with_pairs = basis()
    with_pairs.return_pairs = True
    assert torch.equal(AddPEARL(with_pairs)(graphs()[0]).pearl_pe, AddPEARL(encoding)(graphs()[0]).pearl_pe)
    assert with_pairs.return_pairs
