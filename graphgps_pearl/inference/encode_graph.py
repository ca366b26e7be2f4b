"""The command ``encode-graph``: R-PEARL's encoding of one large graph, from a file of edges to a file of
rows."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphgps_pearl.command import run_command
from graphgps_pearl.errors import UserError

if TYPE_CHECKING:
    from graphgps_pearl.pearl import RPEARL


def encode_graph(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``encode-graph EDGES.npy -o OUT.npy [--model MODEL] [KEY VALUE ...]``."""
    args = _parser(prog).parse_intermixed_args(argv)

    def work() -> None:
        edges_file, out = Path(args.edges), Path(args.output)
        if out.suffix != ".npy":
            raise UserError(f"-o {out}: expected a name that ends in .npy")
        if out.parent.exists() and not out.parent.is_dir():
            raise UserError(f"-o {out}: {out.parent} is no folder")
        if not edges_file.is_file():
            raise UserError(f"{edges_file}: there is no such file")
        if out.exists() and out.samefile(edges_file):
            raise UserError(f"-o {out}: is the file of the edges; choose another name")
        for option in ("block", "chunk"):
            if getattr(args, option) < 1:
                raise UserError(f"--{option} {getattr(args, option)}: expected a whole number from 1 up")
        if args.model and args.overrides:
            raise UserError(f"{args.overrides[0]}: settings are those of --model; leave one of the two out")
        from graphgps_pearl.inference.graph_files import Part, read_edges
        from graphgps_pearl.inference.large_graph import encode_large_graph
        from graphgps_pearl.training.processes import connect, rank, world_size

        edges = read_edges(edges_file)
        module = _trained(args.model) if args.model else _untrained(args.overrides)
        connect()
        began, shown = time.perf_counter(), 0
        for share in encode_large_graph(
            module,
            edges,
            out,
            args.num_nodes,
            undirected=args.undirected,
            block=args.block,
            chunk=args.chunk,
            folder=args.scratch,
            part=Part(rank(), world_size()),
        ):
            if rank() == 0 and int(20 * share) > shown:
                shown = int(20 * share)
                _say(f"{100 * share:3.0f}%, {time.perf_counter() - began:,.0f} s")
        if rank() == 0:
            _say(f"{out}: {edges.shape[1]:,} edges, {time.perf_counter() - began:,.1f} s")

    return run_command(work)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _parser(prog: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Write R-PEARL's encoding of one graph of any size, exactly as in evaluation.",
        epilog="Start it with torchrun to share the work among processes that see the same folder.",
    )
    parser.add_argument(
        "edges", metavar="EDGES.npy", help="whole numbers [2, E] or [E, 2], source and target"
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT.npy", required=True, help="float32 [N, dim_pe] to write"
    )
    parser.add_argument(
        "--model", metavar="MODEL", help="a run or model folder with R-PEARL; random weights if left out"
    )
    parser.add_argument(
        "--undirected",
        action="store_true",
        help="count every edge in both directions; for files that have each edge once",
    )
    parser.add_argument("--num-nodes", type=int, metavar="N", help="if more than the largest node of an edge")
    parser.add_argument("--block", type=int, default=1 << 17, metavar="N", help="nodes at a time (131072)")
    parser.add_argument("--chunk", type=int, default=1, metavar="C", help="samples at a time (1)")
    parser.add_argument(
        "--scratch", metavar="DIR", help="folder for temporary files; that of OUT if left out"
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY VALUE", help="keys of posenc_RPEARL, such as num_samples 16"
    )
    return parser


def _trained(path: str) -> RPEARL:
    from graphgps_pearl.inference.loading import load
    from graphgps_pearl.pearl import RPEARL

    encoder = load(path, "cpu").positional_encoders().get("RPEARL")
    if encoder is None or not isinstance(encoder.encoding, RPEARL):
        raise UserError(f"--model {path}: has no R-PEARL, whose cost is linear in the nodes")
    return encoder.encoding


def _untrained(words: Sequence[str]) -> RPEARL:
    import torch

    from graphgps_pearl import config
    from graphgps_pearl.encoders.pearl import RPEARLNodeEncoder
    from graphgps_pearl.pearl import RPEARL

    group = "posenc_RPEARL."
    keys = [word if i % 2 else group + word.removeprefix(group) for i, word in enumerate(words)]
    cfg = config.parse("seed: 0", keys, name="encode-graph")
    torch.manual_seed(cfg.seed)
    try:
        module = RPEARLNodeEncoder.build(cfg.posenc_RPEARL, cfg.posenc_RPEARL.dim_pe)
    except ValueError as error:  # keys that do not go together
        raise UserError(f"posenc_RPEARL: {error}") from None
    assert isinstance(module, RPEARL)
    return module
