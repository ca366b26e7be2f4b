"""What TensorBoard shows of a finished run besides curves: hyperparameters with results, and pictures.

``predictions``: predicted against true targets, or ROC and precision-recall curves. ``encodings``: a few
graphs of the last split with nodes coloured by columns of the encoding, and all their nodes in the plane of
the two main directions of the encoding.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.tensorboard import SummaryWriter
from torch_geometric.data import Batch, Data
from torch_geometric.utils import degree, to_networkx
from torchmetrics.functional.classification import binary_precision_recall_curve, binary_roc

from graphgps_pearl import config, data, encoders
from graphgps_pearl.inference.loading import load
from graphgps_pearl.report.comparison import selection_metric
from graphgps_pearl.report.plots import new_axes
from graphgps_pearl.runs.results import Run, read_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

BEST = "value_at_best_epoch"  # sorts behind run/, test/, train/ and val/
_GRAPHS, _CHANNELS, _NODES_IN_PLANE, _MOST_NODES = 3, 4, 2000, 500


def annotate(path: Path) -> None:
    """Add hyperparameters and pictures to the TensorBoard events of a finished run.

    They are an extra: what cannot be drawn (a network of a third party may want its batches otherwise) is
    said in one line and takes nothing from the run.
    """
    run = read_run(path)
    if run.result is None:
        return
    try:
        _annotate(path, run)
    except Exception as error:
        log.warning("%s: no pictures in TensorBoard (%s: %s)", path, type(error).__name__, error)


def _annotate(path: Path, run: Run) -> None:
    cfg = config.load(path / "config.yaml")
    model = load(path)
    bundle = data.load(cfg, encoders.required_transforms(cfg))
    split, graphs = list(bundle.splits.items())[-1]
    with SummaryWriter(str(path), filename_suffix=".pictures") as writer:
        writer.add_hparams(hyperparameters(run), results(run), run_name=".")
        raw = predict(model.network, graphs, cfg.train.batch_size)
        pred, true = (bundle.in_units(torch.from_numpy(values)).numpy() for values in raw)
        for name, figure in prediction_figures(pred, true, bundle.spec.task_type).items():
            writer.add_figure(f"views/predictions_{split}_{name}", figure)
        some = list(graphs[: min(len(graphs), 64)])
        for name, encoder in model.positional_encoders().items():
            parts = encodings(encoder, some)
            if small := drawable(some):
                chosen = [some[i] for i in small], [parts[i] for i in small]
                writer.add_figure(f"views/{name}_on_graphs", coloured_graphs(*chosen))
            writer.add_figure(f"views/{name}_in_the_plane", plane(some, parts))


def hyperparameters(run: Run) -> dict[str, Any]:
    """What runs are told apart by."""
    assert run.result is not None
    c = run.config
    return {
        "encoder": run.encoder,
        "layers": f"{c['gt']['layers']} x {c['gt']['layer_type']}",
        "width": c["gnn"]["dim_inner"],
        "base_lr": c["optim"]["base_lr"],
        "batch_size": c["train"]["batch_size"],
        "seed": run.seed,
        "parameters": sum(run.result["parameters"].values()),
    }


def results(run: Run) -> dict[str, float]:
    """The selection metric of every split at the best epoch.

    TensorBoard needs them as curves of one point each; their name puts them behind the real ones.
    """
    assert run.result is not None
    metric = selection_metric(run.result)
    best = run.result["best"]
    return {
        f"{BEST}/{s}_{metric}": best[f"{s}_{metric}"] for s in run.result["splits"] if f"{s}_{metric}" in best
    }


@torch.inference_mode()
def predict(
    network: torch.nn.Module, graphs: Sequence[Data], batch_size: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Predictions and labels of all graphs, [G, D] each ([G] classes); of node targets, of the nodes that
    have a label."""
    device = next(network.parameters()).device
    outputs = [
        network(
            Batch.from_data_list([graphs[j] for j in range(i, min(i + batch_size, len(graphs)))]).to(device)
        )
        for i in range(0, len(graphs), batch_size)
    ]
    pred, true = (torch.cat(parts).cpu().numpy() for parts in zip(*outputs, strict=True))
    known = true >= 0 if true.ndim == 1 else ~np.isnan(true).all(axis=1)
    return (pred, true) if len(pred) == len(graphs) else (pred[known], true[known])


def prediction_figures(pred: NDArray[Any], true: NDArray[Any], task_type: str) -> dict[str, Figure]:
    """A scatter for regression; ROC and precision-recall for labels that occur with both values."""
    if task_type == "regression":
        return {"scatter": _scatter(pred, true)}
    if task_type in ("classification", "subtoken_prediction"):
        return {}
    roc, roc_axes = new_axes("false positive rate", "true positive rate")
    pr, pr_axes = new_axes("recall", "precision")
    for column in range(true.shape[1]):
        known = ~np.isnan(true[:, column])
        p, t = torch.from_numpy(pred[known, column]).sigmoid(), torch.from_numpy(true[known, column]).long()
        if t.numel() and t.min() < t.max():
            false_positive, true_positive, _ = binary_roc(p, t)
            precision, recall, _ = binary_precision_recall_curve(p, t)
            roc_axes.plot(false_positive, true_positive, linewidth=1)
            pr_axes.plot(recall, precision, linewidth=1)
    return {"roc": roc, "pr": pr}


def _scatter(pred: NDArray[Any], true: NDArray[Any]) -> Figure:
    figure, axes = new_axes("true", "predicted")
    for column in range(true.shape[1]):
        axes.scatter(true[:, column], pred[:, column], s=5, alpha=0.5, linewidths=0)
    low, high = np.nanmin(true), np.nanmax(true)
    axes.plot([low, high], [low, high], color="black", linewidth=0.8)
    return figure


@torch.inference_mode()
def encodings(encoder: encoders.PosEncEncoder, graphs: Sequence[Data]) -> list[NDArray[Any]]:
    """The encoding of every graph, [n_i, dim_pe] each."""
    batch = Batch.from_data_list(list(graphs)).to(next(encoder.parameters()).device)
    parts = encoder.encode(batch).float().cpu().split(batch.ptr.diff().tolist())
    return [part.numpy() for part in parts]


def drawable(graphs: Sequence[Data]) -> list[int]:
    """Which graphs a picture can show: the layout of thousands of nodes would take minutes."""
    return [i for i, graph in enumerate(graphs) if 0 < int(graph.num_nodes or 0) <= _MOST_NODES]


def coloured_graphs(graphs: Sequence[Data], parts: Sequence[NDArray[Any]]) -> Figure:
    """The first graphs, one row each, coloured by the columns of the encoding that vary most."""
    channels = np.concatenate(parts).std(axis=0).argsort()[::-1][:_CHANNELS]
    rows = min(_GRAPHS, len(graphs))
    size = (2.6 * len(channels), 2.6 * rows)
    figure, axes = plt.subplots(rows, len(channels), figsize=size, squeeze=False, layout="constrained")
    for row in range(rows):
        graph = to_networkx(graphs[row], to_undirected=True)
        places = nx.kamada_kawai_layout(graph)
        for column, channel in enumerate(channels):
            drawn = axes[row][column]
            nx.draw(
                graph,
                places,
                ax=drawn,
                node_color=parts[row][:, channel],
                node_size=60,
                cmap="coolwarm",
                width=0.8,
            )
            drawn.set_title(f"column {channel}", fontsize=8)
    return figure


def plane(graphs: Sequence[Data], parts: Sequence[NDArray[Any]]) -> Figure:
    """Nodes in the two main directions of their encodings, coloured by degree."""
    joined = np.concatenate(parts)[:_NODES_IN_PLANE]
    degrees = torch.cat([degree(g.edge_index[0], g.num_nodes) for g in graphs])[:_NODES_IN_PLANE]
    centred = joined - joined.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:2]
    x = centred @ directions.T
    figure, axes = new_axes("first principal component", "second")
    dots = axes.scatter(x[:, 0], x[:, -1], c=degrees.numpy(), s=6, cmap="viridis")
    figure.colorbar(dots, label="degree")
    return figure
