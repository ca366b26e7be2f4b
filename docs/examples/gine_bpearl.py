"""B-PEARL in a plain PyG model: GINE on molecules, no GraphGym and no config.

Run it where the package is installed, or as ``PYTHONPATH=. python docs/examples/gine_bpearl.py``.
"""

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from rdkit import Chem, RDConfig
from rdkit.Chem.Crippen import MolLogP
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINEConv, global_add_pool
from torch_geometric.utils import from_smiles

from graphgps_pearl.pearl import BPEARL


class GINE(nn.Module):
    """GINE layers on atoms and bonds by their types, and on B-PEARL."""

    def __init__(self, dim: int = 64, dim_pe: int = 16, layers: int = 3) -> None:
        super().__init__()
        self.pe = BPEARL(dim_pe=dim_pe, hidden_dim=24, num_taps=1, num_layers=4)
        self.atoms, self.bonds = nn.Embedding(119, dim - dim_pe), nn.Embedding(22, dim)
        self.convs = nn.ModuleList(GINEConv(MLP([dim, dim, dim])) for _ in range(layers))
        self.head = MLP([dim, dim, 1], norm=None)

    def forward(self, batch: Batch) -> torch.Tensor:
        """One number per molecule, [graphs, 1]."""
        p = self.pe(batch)  # [N, dim_pe], from the edges alone
        x, edge_attr = torch.cat([self.atoms(batch.x[:, 0]), p], dim=1), self.bonds(batch.edge_attr[:, 0])
        for conv in self.convs:
            x = x + conv(x, batch.edge_index, edge_attr)
        return self.head(global_add_pool(x, batch.batch))


def molecules(count: int) -> Iterator[Data]:
    """Drug-like molecules, and RDKit's logP to learn."""
    file = Path(RDConfig.RDDataDir) / "Pains" / "test_data" / "wehi_mols.csv"  # comes with RDKit
    with file.open() as lines:
        for smiles, *_ in islice(csv.reader(lines), count):
            data = from_smiles(smiles)
            data.y = torch.tensor([[MolLogP(Chem.MolFromSmiles(smiles))]])
            yield data


def main(count: int = 1000, epochs: int = 5) -> list[float]:
    """Train, and return the error of every epoch."""
    torch.manual_seed(0)
    loader = DataLoader(list(molecules(count)), batch_size=32, shuffle=True)
    model = GINE()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    errors = []
    for epoch in range(epochs):
        total = 0.0
        for batch in loader:
            loss = nn.functional.l1_loss(model(batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * batch.num_graphs
        errors.append(total / count)
        print(f"epoch {epoch + 1}: mean absolute error of logP {errors[-1]:.3f}")
    return errors


if __name__ == "__main__":
    main()
