"""The launcher for upstream GraphGPS, against a minimal stand-in of upstream's registration protocol.

The stand-in claims names at import, looks composed names up whole, walks every ``posenc_*`` group, refuses
statistics that it does not know, and calls library functions in the ways that no longer work.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphgps_pearl import registry, upstream

REPOSITORY = Path(__file__).resolve().parents[1]

FILES = {
    "graphgps/__init__.py": "from . import encoder, layer, loader, optimizer  # noqa",
    "graphgps/layer/__init__.py": """
from torch_scatter import scatter, scatter_add, scatter_max
from distutils.version import LooseVersion
assert LooseVersion('2.13.0+cpu') >= LooseVersion('1.8.0')
""",
    "graphgps/encoder/graphormer_encoder.py": "import networkx as nx",
    "graphgps/encoder/__init__.py": """
import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import register_config, register_node_encoder
from yacs.config import CfgNode
from . import graphormer_encoder

@register_config('posenc')
def groups(cfg):
    cfg.posenc_RWSE = CfgNode({'enable': False, 'dim_pe': 5})
    cfg.posenc_LapPE = CfgNode({'enable': False, 'dim_pe': 3})
    cfg.posenc_EquivStableLapPE = CfgNode({'enable': False})
    cfg.dataset.node_encoder_num_types = 0

@register_node_encoder('TypeDictNode')
class TypeDictNode(torch.nn.Module):
    def __init__(self, emb_dim):
        super().__init__()
        self.encoder = torch.nn.Embedding(cfg.dataset.node_encoder_num_types, emb_dim)
    def forward(self, batch):
        batch.x = self.encoder(batch.x[:, 0])
        return batch

class Encoding(torch.nn.Module):
    def __init__(self, dim_emb, expand_x=True):
        super().__init__()
        self.columns = getattr(cfg, 'posenc_' + self.name).dim_pe
    def forward(self, batch):
        batch.x = torch.cat([batch.x, torch.ones(batch.num_nodes, self.columns)], 1)
        return batch

for name in ('RWSE', 'LapPE'):
    register_node_encoder(name, type(name, (Encoding,), {'name': name}))

@register_node_encoder('EquivStableLapPE')
class EquivStableLapPE(torch.nn.Module):
    def __init__(self, dim_emb):  # no expand_x, and no dim_pe in its group
        super().__init__()
    def forward(self, batch):
        return batch

register_node_encoder('TypeDictNode+RWSE', object)
""",
    "graphgps/loader/__init__.py": "from . import master_loader",
    "graphgps/loader/master_loader.py": """
from functools import partial
from torch_geometric.graphgym.config import cfg

def compute_posenc_stats(data, pe_types, is_undirected, cfg):
    for name in pe_types:
        if name not in ['LapPE', 'EquivStableLapPE', 'RWSE']:
            raise ValueError(f'Unexpected PE stats selection {name}')
    return data

def prepare(data):
    groups = {key: group for key, group in cfg.items() if key.startswith('posenc_')}
    enabled = [key.split('_', 1)[1] for key, group in groups.items() if group.enable]
    return partial(compute_posenc_stats, pe_types=enabled, is_undirected=True, cfg=cfg)(data)
""",
    "graphgps/loader/dataset/__init__.py": "from . import peptides_structural",
    "graphgps/loader/dataset/peptides_structural.py": """
import torch

def targets(table):
    return torch.cat([torch.Tensor([table.iloc[i][['b', 'a']]]) for i in range(len(table))])
""",
    "graphgps/optimizer/__init__.py": "from . import extra_optimizers",
    "graphgps/optimizer/extra_optimizers.py": "import torch.optim as optim",
    "graphgps/logger.py": "from sklearn.metrics import mean_squared_error",
    "main.py": """
import os, sys
import networkx, pandas, torch
import graphgps
from graphgps import logger, loader
from graphgps.loader.dataset.peptides_structural import targets
from graphgps.encoder.graphormer_encoder import nx
from graphgps.optimizer.extra_optimizers import optim
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.graphgym.cmd_args import parse_args
from torch_geometric.graphgym.config import cfg, load_cfg, set_cfg
from torch_geometric.graphgym.register import network_dict, node_encoder_dict
from torch_scatter import scatter, scatter_add, scatter_max

if __name__ == '__main__':
    set_cfg(cfg)
    load_cfg(cfg, parse_args())
    cfg.share.dim_in = 1
    ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    data = Data(x=torch.tensor([[0], [1], [0], [1]]), edge_index=ring)
    graph = loader.master_loader.prepare(data.clone())
    for name in [cfg.dataset.node_encoder_name, 'TypeDictNode+RPEARL', 'TypeDictNode+LapPE+BPEARL',
                 'TypeDictNode+EquivStableLapPE+RPEARL']:
        encoder = node_encoder_dict[name](24)
        batch = encoder(Batch.from_data_list([graph.clone(), graph.clone()]))
        batch.x.square().sum().backward()
        print(name, list(batch.x.shape), sum(p.numel() for p in encoder.parameters()) > 0)
    print('own', node_encoder_dict['TypeDictNode+RWSE'] is object, 'GPSModel' in network_dict)
    true, pred = torch.tensor([0.0, 0.0]), torch.tensor([3.0, 3.0])
    print('rmse', logger.mean_squared_error(true, pred), logger.mean_squared_error(true, pred, squared=False))
    plateau = optim.lr_scheduler.ReduceLROnPlateau(
        optimizer=optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0), mode='min', verbose=True)
    print('plateau', type(plateau) is torch.optim.lr_scheduler.ReduceLROnPlateau)
    path = networkx.path_graph(3)
    print('paths', nx.shortest_path(path)[0][2], nx.shortest_path(path, 0, 2), nx is networkx)
    index = torch.tensor([0, 0, 1])
    src = torch.tensor([1.0, 2.0, 4.0])
    out = torch.zeros(2)
    scatter(src, index, dim=0, out=out, reduce='add')
    print('scatter', scatter(src, index, 0, None, 2, reduce='sum').tolist(), out.tolist(),
          scatter_max(src, index, dim=0, dim_size=2)[0].tolist(), scatter_add(src, index, dim=0).tolist())
    torch.save(InMemoryDataset.collate([data, data]), os.path.join(cfg.out_dir, 'processed.pt'))
    print('load', torch.load(os.path.join(cfg.out_dir, 'processed.pt'))[0])
    print('targets', targets(pandas.DataFrame({'a': [1.5, 2.5], 'b': [3, 4]})).tolist())
    print('argv', sys.argv[1:3], os.path.basename(sys.argv[0]))
""",
}
CONFIG = """
dataset: {node_encoder: True, node_encoder_name: TypeDictNode+RWSE+LapPE+BPEARL, node_encoder_num_types: 2}
posenc_BPEARL: {enable: True, dim_pe: 4, hidden_dim: 6, num_layers: 1}
posenc_RPEARL: {dim_pe: 7, hidden_dim: 6, num_layers: 1, num_samples: 3}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def launch(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "graphgps_pearl.upstream", str(checkout / "main.py"), *words]
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": "", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=180, check=False
    )


def test_an_unmodified_checkout_trains_with_our_encodings(checkout: Path) -> None:
    done = launch(checkout, "--cfg", "config.yaml", "posenc_RWSE.dim_pe", "6", "out_dir", str(checkout))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "TypeDictNode+RWSE+LapPE+BPEARL [8, 24] True",
        "TypeDictNode+RPEARL [8, 24] True",
        "TypeDictNode+LapPE+BPEARL [8, 24] True",
        "TypeDictNode+EquivStableLapPE+RPEARL [8, 24] True",
        "own True False",
        "rmse 9.0 3.0",
        "plateau True",
        "paths [0, 1, 2] [0, 1, 2] False",
        "scatter [3.0, 4.0] [3.0, 4.0] [2.0, 4.0] [3.0, 4.0]",
        "load Data(x=[8, 1], edge_index=[2, 16])",
        "targets [[3.0, 1.5], [4.0, 2.5]]",
        "argv ['--cfg', 'config.yaml'] main.py",
    ]


def test_mistakes_on_the_command_line_are_one_line(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "main.py").write_text("")
    cases = {
        (): "usage: python -m graphgps_pearl.upstream",
        (str(tmp_path / "nowhere" / "main.py"),): "no such file",
        (str(tmp_path / "elsewhere" / "main.py"),): "is this a GraphGPS checkout?",
    }
    for words, message in cases.items():
        assert upstream.main(words) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
    assert upstream.main(["--help"]) == 0


def test_requested_encoders_come_from_file_and_command_line(checkout: Path) -> None:
    file = str(checkout / "config.yaml")
    assert upstream.requested_encoders(["--cfg", file]) == ["TypeDictNode+RWSE+LapPE+BPEARL"]
    assert upstream.requested_encoders([f"--cfg={file}"]) == ["TypeDictNode+RWSE+LapPE+BPEARL"]
    words = ["--cfg", file, "dataset.node_encoder_name", "Atom+BPEARL"]
    assert upstream.requested_encoders(words)[0] == "Atom+BPEARL"
    assert upstream.requested_encoders(["--cfg", "missing.yaml"]) == []


def test_a_package_that_upstream_needs_is_named(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests of this process may have called register(), after which importing graphgps is refused.
    finders = [finder for finder in sys.meta_path if not isinstance(finder, registry._UpstreamTooLate)]
    monkeypatch.setattr(sys, "meta_path", finders)
    (checkout / "graphgps" / "__init__.py").write_text("import performer_pytorch_of_the_past")
    path, argv = list(sys.path), list(sys.argv)
    try:
        assert upstream.main([str(checkout / "main.py")]) == 2
    finally:
        sys.path[:], sys.argv[:] = path, argv
        for name in [n for n in sys.modules if n.split(".")[0] in ("graphgps", "torch_scatter")]:
            del sys.modules[name]
    message = "GraphGPS itself needs the package performer-pytorch-of-the-past: pip install"
    assert message in capsys.readouterr().err
