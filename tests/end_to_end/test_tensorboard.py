"""What TensorBoard shows of a comparison, read off the page that a browser renders."""

import json
from urllib.request import Request, urlopen

import numpy as np
import pytest
import torch
from helpers.browser import chromium, dom, screenshot, serve
from helpers.small_runs import CONFIG
from torch_geometric.data import Data

from graphgps_pearl import cli
from graphgps_pearl.report.pictures import BEST, drawable, prediction_figures


@pytest.fixture(scope="module")
def board(tmp_path_factory) -> str:
    """The address of a TensorBoard over two trained runs that differ in their encoder."""
    chromium()  # or skip, before anything is trained
    folder = tmp_path_factory.mktemp("board")
    (folder / "small.yaml").write_text(CONFIG)
    words = ["out_dir", str(folder / "results"), "dataset.dir", str(folder / "data"), "optim.max_epoch", "2"]
    for name, encoder in (("none", "Atom"), ("rpearl", "Atom+RPEARL")):
        chosen = ["name_tag", name, "dataset.node_encoder_name", encoder]
        assert cli.main(["train", "--cfg", str(folder / "small.yaml"), *words, *chosen]) == 0
    return serve(folder / "results", runs=2)


@pytest.mark.slow
def test_runs_overlay_under_readable_names(board, tmp_path):
    page = dom(f"{board}?tagFilter=mae%7Ctraining/#timeseries")
    for run in ("small-none/0", "small-rpearl/0"):
        assert run in page
    for tag in (
        "train/mae",
        "val/mae",
        "test/mae",
        "training/lr",
        "training/grad_norm",
        "training/seconds",
        "training/memory_mb",
    ):
        assert tag in page
    screenshot(f"{board}#scalars&tagFilter=mae", tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000


@pytest.mark.slow
def test_pictures_of_predictions_and_encodings(board):
    page = dom(f"{board}?tagFilter=views#timeseries")
    for tag in ("views/predictions_test_scatter", "views/RPEARL_on_graphs", "views/RPEARL_in_the_plane"):
        assert tag in page


@pytest.mark.slow
def test_hyperparameters_stand_beside_results(board):
    """Asked of the server, as the page does."""
    request = Request(f"{board}data/plugin/hparams/experiment", json.dumps({"experimentName": ""}).encode())
    request.add_header("Content-Type", "application/json")
    experiment = json.load(urlopen(request))
    assert {h["name"] for h in experiment["hparamInfos"]} >= {"encoder", "base_lr", "width", "parameters"}
    assert {m["name"]["tag"] for m in experiment["metricInfos"]} >= {f"{BEST}/val_mae", f"{BEST}/test_mae"}


def test_tensorboard_opens_on_curves():
    """Groups are sorted by name; what has one point only comes last."""
    assert sorted([BEST, "run", "test", "train", "val", "ood_val"])[-1] == BEST


def test_graphs_too_large_for_a_layout_are_not_drawn():
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(edge_index=edges, num_nodes=n) for n in (600, 2, 500)]
    assert drawable(graphs) == [1, 2]


def test_a_label_that_no_graph_of_the_split_has_leaves_the_others_their_curves():
    true = np.array([[0, np.nan], [1, np.nan], [1, np.nan]], np.float32)
    figures = prediction_figures(np.zeros_like(true), true, "classification_multilabel")
    assert [len(figure.axes[0].lines) for figure in figures.values()] == [1, 1]
