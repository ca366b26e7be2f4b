"""GraphGym's own config, as modules registered with GraphGym see it."""

import pytest
from helpers.upstream_configs import PEPTIDES_STRUCT, ZINC_RWSE
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg as graphgym
from torch_geometric.graphgym.config import set_cfg

from graphgps_pearl import config
from graphgps_pearl.config.schema import get


@pytest.fixture(autouse=True)
def _restore():
    registered = dict(register.config_dict)
    yield
    register.config_dict.clear()
    register.config_dict.update(registered)
    graphgym.defrost()
    set_cfg(graphgym)


def test_every_key_arrives() -> None:
    cfg = config.parse(PEPTIDES_STRUCT)
    config.activate(cfg)
    derived = {"gnn.head", "dataset.transductive", "run_dir"}
    for key in set(config.SCHEMA) - derived:
        assert get(graphgym, key) == get(cfg, key), key


def test_what_graphgym_derives() -> None:
    cfg = config.parse(ZINC_RWSE, ["gnn.head", "default", "gnn.layers_post_mp", "0"])
    config.activate(cfg, dim_in=3, dim_out=7)
    assert graphgym.gnn.head == "graph"
    assert graphgym.gnn.layers_post_mp == 1
    assert graphgym.dataset.transductive is False
    assert graphgym.run_dir == "results"
    assert graphgym.posenc_RWSE.enable is True
    assert graphgym.posenc_RWSE.kernel.times == list(range(1, 21))
    assert (graphgym.share.dim_in, graphgym.share.dim_out) == (3, 7)
    assert cfg.gnn.head == "default" and cfg.posenc_RWSE.kernel.times == []


def test_the_two_are_apart_and_writable() -> None:
    cfg = config.parse(ZINC_RWSE)
    config.activate(cfg)
    graphgym.gnn.dim_edge = 64  # upstream's encoders do so
    graphgym.optim.steps.append(1)
    graphgym.gt.layers = 99
    assert cfg.gt.layers == 10 and cfg.optim.steps == [30, 60, 90]


def test_nothing_is_left_of_the_last_one() -> None:
    config.activate(config.parse(ZINC_RWSE))
    config.activate(config.parse(PEPTIDES_STRUCT))
    assert graphgym.posenc_RWSE.enable is False and graphgym.posenc_RWSE.kernel.times == []
    assert graphgym.gt.layers == 4


def test_a_frozen_graphgym_config_is_no_obstacle() -> None:
    graphgym.freeze()
    config.activate(config.parse(ZINC_RWSE))
    assert graphgym.gt.layers == 10


def test_keys_that_others_registered_stay() -> None:
    def theirs(cfg) -> None:
        cfg.gnn.their_key = 5
        cfg.gt = cfg.get("gt", type(cfg)())

    register.register_config("theirs", theirs)
    config.activate(config.parse(ZINC_RWSE))
    assert graphgym.gnn.their_key == 5 and graphgym.gnn.dim_inner == 64
