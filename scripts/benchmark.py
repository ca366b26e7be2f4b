"""How fast the encodings and a GPS step are, as ratios to plain implementations run in the same process.

    python scripts/benchmark.py [--suite pe|gps|plan|scale ...] [--json FILE] [--plot FILE] [--data DIR]

Each case: warm-up, then repeats in which the two sides take turns; the median and the spread of the ratios.
With one thread the clock is the processor time of this process, so that neighbours on the machine disturb
little; with more threads it is the wall clock. Peak memory is that of a fresh process that runs one side.
Real molecules are taken from ``--data`` (as ``dataset.dir``) if they are there, synthetic ones of the same
sizes otherwise: chains with rings.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout need not be installed
sys.path.insert(0, str(Path(__file__).resolve().parent))

from baselines.dense_gps import DenseGPS
from baselines.padded_pearl import PaddedPEARL, sym_laplacian

from graphgps_pearl import config, data, networks
from graphgps_pearl.errors import UserError
from graphgps_pearl.pearl import BPEARL, RPEARL, BPEARLPlan, stored_plan
from graphgps_pearl.training.schedules import make_optimizer

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
Step = Callable[[], object]


@dataclass
class Result:
    """One comparison: seconds (medians), the ratio baseline / ours with its spread, peak memory in MB."""

    suite: str
    case: str
    ours: float
    baseline: float
    ratio: float
    spread: tuple[float, float]
    ours_mb: float | None = None
    baseline_mb: float | None = None


@dataclass
class Case:
    """Two ways to do the same."""

    suite: str
    name: str
    ours: Callable[[], Step]  # prepares, and returns what is timed
    baseline: Callable[[], Step]
    memory: bool = True


# ---------------------------------------------------------------------------------------------- graphs


def chain_with_rings(n: int, rings: int) -> Tensor:
    """A chain of n nodes with a six-ring every so many nodes, [2, E]."""
    node = torch.arange(n - 1)
    start = torch.arange(0, max(n - 5, 0), rings)
    one_way = torch.cat([torch.stack([node, node + 1]), torch.stack([start, start + 5])], dim=1)
    return torch.cat([one_way, one_way.flip(0)], dim=1)


def synthetic(kind: str, count: int) -> list[Data]:
    """Graphs as large as ZINC's (9 to 37 nodes) or as Peptides' (8 to 444, mean near 150)."""
    draw = torch.Generator().manual_seed(0)
    unit = torch.rand(count, generator=draw)
    sizes = (9 + 28 * unit).int() if kind == "zinc" else (8 + 436 * unit**2).int()
    graphs = []
    for n in sizes.tolist():
        edges = chain_with_rings(n, 7 + n % 5)
        width = (1, 1) if kind == "zinc" else (9, 3)
        x = torch.zeros(n, width[0], dtype=torch.long)
        attr = torch.ones(edges.size(1), width[1], dtype=torch.long)
        attr = attr.squeeze(1) if kind == "zinc" else attr
        y = torch.zeros(1, 1 if kind == "zinc" else 11)
        graphs.append(Data(x=x, edge_index=edges, edge_attr=attr, y=y))
    return graphs


def load_graphs(kind: str, count: int, folder: str | None) -> list[Data]:
    """Real graphs if they are there."""
    if folder is not None:
        name = "zinc-none" if kind == "zinc" else "peptides-func-none"
        subset = ["dataset.subset", "1000"] if kind == "peptides" else []
        if kind == "peptides" and (own := Path(folder) / "Peptides").is_dir():
            subset += ["dataset.path", str(own)]
        try:
            cfg = config.load(CONFIGS / f"{name}.yaml", ["dataset.dir", folder, *subset])
            train = data.load(cfg).splits["train"]
            return [train[i] for i in range(min(count, len(train)))]
        except UserError as error:
            print(f"{kind}: synthetic graphs ({error})", file=sys.stderr)
    return synthetic(kind, count)


# ---------------------------------------------------------------------------------------------- suites


AUTHORS: dict[str, dict[str, Any]] = {  # layer sizes of the paper's code
    "zinc": {"dim_pe": 37, "hidden_dim": 40, "num_layers": 8, "mlp_layers": 3, "mlp_hidden": 105},
    "peptides": {"dim_pe": 37, "hidden_dim": 37, "num_layers": 9, "mlp_layers": 2, "mlp_hidden": 120},
}
TOY: dict[str, Any] = {"dim_pe": 4, "hidden_dim": 4, "num_layers": 2, "mlp_layers": 2, "mlp_hidden": 4}


def pe_suite(args: argparse.Namespace) -> Iterator[Case]:
    """The encodings alone, forward + backward."""
    batch_of = {"zinc": 128, "peptides": args.peptides_batch}
    for kind, num_taps in (("zinc", 7), ("peptides", 1)):
        sizes = (TOY if args.toy else AUTHORS[kind]) | {"num_taps": num_taps}
        graphs = load_graphs(kind, 4 if args.toy else batch_of[kind], args.data)
        batch = Batch.from_data_list(graphs)
        for encoding, samples in (("B-PEARL", None), ("R-PEARL", 2 if args.toy else 20)):
            yield Case(
                "pe",
                f"{encoding}, {kind}, batch {len(graphs)}, K = {num_taps}",
                partial(_fast, batch, samples, sizes),
                partial(_padded, graphs, batch, samples, sizes),
            )


def _fast(batch: Batch, num_samples: int | None, sizes: dict[str, Any]) -> Step:
    pe: BPEARL | RPEARL
    if num_samples is None:
        pe = BPEARL(**sizes, skip="none")
    else:
        pe = RPEARL(**sizes, skip="none", num_samples=num_samples)
    return lambda: pe(batch.edge_index, batch.batch).sum().backward()


def _padded(graphs: list[Data], batch: Batch, num_samples: int | None, sizes: dict[str, Any]) -> Step:
    laplacians = [sym_laplacian(graph.edge_index, int(graph.num_nodes or 0)) for graph in graphs]
    pe = PaddedPEARL(**sizes, num_samples=num_samples)
    return lambda: pe(batch.edge_index, laplacians).sum().backward()


def gps_suite(args: argparse.Namespace) -> Iterator[Case]:
    """A training step of the shipped configs, against dense-padded GPS without encoding."""
    for kind, count in (("zinc", 32), ("peptides", args.gps_peptides_batch)):
        graphs = load_graphs(kind, 4 if args.toy else count, args.data)
        batch = Batch.from_data_list(graphs)
        for name in (f"{kind}-bpearl", f"{kind}-none"):
            yield Case(
                "gps",
                f"step of {name}, batch {len(graphs)}, against dense GPS without encoding",
                partial(_network, batch, name, args.toy, dense=False),
                partial(_network, batch, f"{kind}-none", args.toy, dense=True),
            )


def _network(batch: Batch, name: str, toy: bool, dense: bool) -> Step:
    small = ["gt.layers", "1"] if toy else []
    cfg = config.load(CONFIGS / f"{name}.yaml", small)
    config.activate(cfg)
    torch.manual_seed(0)
    network = networks.build(cfg, batch.x.size(1), batch.y.size(1))
    if dense:
        network = DenseGPS(cfg, network)
    # the baseline steps as GraphGPS does, with torch's default; ours as training here does
    parameters = list(network.parameters())
    ours = make_optimizer("adamW", parameters, base_lr=1e-3, weight_decay=0.01)
    optimiser = torch.optim.AdamW(parameters) if dense else ours

    def step() -> None:
        optimiser.zero_grad()
        prediction, _ = network(batch.clone())
        prediction.abs().mean().backward()
        optimiser.step()

    return step


def plan_suite(args: argparse.Namespace) -> Iterator[Case]:
    """Plans stored with the graphs against plans found in every batch; and what storing takes."""
    for kind, count, layers in (("zinc", 32, 8), ("peptides", args.gps_peptides_batch, 9)):
        graphs = load_graphs(kind, 4 if args.toy else count, args.data)
        transform = BPEARLPlan(num_taps=1, num_layers=layers)
        began = time.process_time()
        planned = [transform(graph.clone()) for graph in graphs]
        seconds = (time.process_time() - began) / len(graphs)
        numbers = sum(v.numel() for g in planned for k, v in g.to_dict().items() if k.startswith("bpearl_"))
        print(
            f"plan, {kind}: {1000 * seconds:.1f} ms and {4 * numbers / len(graphs) / 1000:.0f} kB "
            "for each graph, at 32 bits a number"
        )
        pe = BPEARL(dim_pe=28, num_layers=layers)
        batch, with_plan = Batch.from_data_list(graphs), Batch.from_data_list(planned)
        yield Case(
            "plan",
            f"B-PEARL with stored plans, {kind}, batch {len(graphs)}, against plans found in the batch",
            partial(_encode, pe, with_plan),
            partial(_encode, pe, batch),
            memory=False,
        )


def _encode(pe: BPEARL, batch: Batch) -> Step:
    return lambda: pe(batch.edge_index, batch.batch, plan=stored_plan(batch)).sum().backward()


def scale_suite(args: argparse.Namespace) -> Iterator[Case]:
    """R-PEARL on one large graph, forward + backward in chunks, against 8 eigenvectors by Lanczos."""
    for nodes in (400,) if args.toy else args.nodes:
        yield Case(
            "scale",
            f"R-PEARL, random graph of {nodes:,} nodes, against Lanczos (8 eigenvectors)",
            partial(_large, nodes),
            partial(_lanczos, nodes),
        )


def random_edges(nodes: int) -> Tensor:
    """2 N edges between nodes at random, both ways."""
    ends = torch.randint(nodes, (2, 2 * nodes), generator=torch.Generator().manual_seed(0))
    return torch.cat([ends, ends.flip(0)], dim=1)


def _large(nodes: int) -> Step:
    edges = random_edges(nodes)
    pe = RPEARL(dim_pe=16, hidden_dim=40, num_layers=5, num_samples=20, norm="layer", chunk_size=1)
    return lambda: pe(edges, num_nodes=nodes).sum().backward()


def _lanczos(nodes: int) -> Step:
    from scipy.sparse import coo_matrix, diags, eye
    from scipy.sparse.linalg import eigsh

    source, target = random_edges(nodes).numpy()
    adjacency = coo_matrix(([1.0] * len(source), (target, source)), shape=(nodes, nodes)).tocsr()
    root = diags(1 / adjacency.sum(1).A1.clip(1) ** 0.5)
    laplacian = eye(nodes) - root @ adjacency @ root
    return lambda: eigsh(laplacian, k=8, which="SA", tol=1e-3)


SUITES = {"pe": pe_suite, "gps": gps_suite, "plan": plan_suite, "scale": scale_suite}


# ---------------------------------------------------------------------------------------------- measuring


def compare(case: Case, repeats: int, threads: int) -> Result:
    """Both sides in turns: medians, and the ratios' median, least and greatest."""
    clock = time.process_time if threads == 1 else time.perf_counter
    steps = (case.ours(), case.baseline())
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        for step, taken in zip(steps, seconds, strict=True):
            began = clock()
            step()
            if turn:  # the first is the warm-up
                taken.append(clock() - began)
    ratios = [b / a for a, b in zip(*seconds, strict=True)]
    ours, baseline = (statistics.median(taken) for taken in seconds)
    spread = min(ratios), max(ratios)
    return Result(case.suite, case.name, ours, baseline, statistics.median(ratios), spread)


def peak_memory(args: argparse.Namespace, case: Case, side: str) -> float:
    """MB that one step adds to a fresh process."""
    command = [sys.executable, __file__, "--suite", case.suite, "--side", side, "--case", case.name]
    command += ["--peptides-batch", str(args.peptides_batch), "--threads", str(args.threads)]
    command += ["--gps-peptides-batch", str(args.gps_peptides_batch)]
    command += ["--nodes", *map(str, args.nodes)]
    command += (["--data", args.data] if args.data else []) + (["--toy"] if args.toy else [])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def run_side(case: Case, side: str) -> float:
    """Run one side once and say by how much the process grew, in MB."""
    step = case.ours() if side == "ours" else case.baseline()
    before = _high_water()
    step()
    return _high_water() - before


def _high_water() -> float:
    """The most memory this process ever had, in MB. (On Linux, getrusage begins with that of the parent.)"""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def show(result: Result) -> str:
    """One line of the table."""
    low, high = result.spread
    line = f"{result.case:76s} {result.ours:9.3f} s {result.baseline:9.3f} s  {result.ratio:6.2f}x"
    line += f" ({low:.2f} to {high:.2f})"
    if result.ours_mb is not None and result.baseline_mb is not None:
        line += f"  {result.ours_mb:7.0f} MB {result.baseline_mb:7.0f} MB"
    return line


def plot(results: list[Result], file: Path) -> None:
    """Ratios as bars."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 1 + 0.5 * len(results)), layout="constrained")
    errors = [[r.ratio - r.spread[0] for r in results], [r.spread[1] - r.ratio for r in results]]
    axes.barh([r.case for r in results], [r.ratio for r in results], xerr=errors, color="#4477aa")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("times as fast as the baseline")
    axes.invert_yaxis()
    figure.savefig(file, dpi=120)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--suite", choices=SUITES, nargs="+", default=["pe", "gps", "plan"])
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--plot", type=Path, help="write a plot here")
    parser.add_argument("--data", help="folder of the real datasets")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--peptides-batch", type=int, default=32, help="of suite pe; smaller if it does not fit"
    )
    parser.add_argument("--gps-peptides-batch", type=int, default=32, help="of suites gps and plan")
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000], help="of suite scale")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--no-memory", action="store_true", help="do not measure memory")
    parser.add_argument("--toy", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--side", choices=("ours", "baseline"), help=argparse.SUPPRESS)
    parser.add_argument("--case", default="", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> list[Result]:
    """Run the suites that were asked for."""
    args = parse(arguments)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    cases = (case for suite in args.suite for case in SUITES[suite](args) if args.only in case.name)
    if args.side:
        chosen = next(case for case in cases if case.name == args.case)
        print(run_side(chosen, args.side))
        return []
    results = []
    print(f"{'':76s} {'ours':>11s} {'baseline':>11s}   ratio (spread)  peak memory")
    for case in cases:
        result = compare(case, args.repeats, args.threads)
        if case.memory and not args.no_memory:
            result.ours_mb, result.baseline_mb = (peak_memory(args, case, s) for s in ("ours", "baseline"))
        results.append(result)
        print(show(result), flush=True)
    if args.json:
        about = {"torch": torch.__version__, "threads": args.threads, "date": time.strftime("%Y-%m-%d")}
        args.json.write_text(json.dumps({**about, "results": [asdict(r) for r in results]}, indent=1))
    if args.plot:
        plot(results, args.plot)
    return results


if __name__ == "__main__":
    main()
