"""Which configs of a GraphGPS checkout load here, and which can train; for docs/coming-from-graphgps.md.

    python scripts/upstream_configs.py PATH/TO/GraphGPS [--reasons]

A config trains if its dataset is offered here and its network can be built; the data itself is not read.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout need not be installed

from graphgps_pearl import config, data, networks
from graphgps_pearl.errors import UserError
from graphgps_pearl.registry import register

#: Rows of the table: a title, and how the names of its configs begin.
FAMILIES = {
    "ZINC": ("zinc",),
    "Peptides-func, Peptides-struct": ("peptides",),
    "ogbg-molhiv, molpcba, ppa, code2": ("ogbg",),
    "PCQM4Mv2": ("pcqm4m",),
    "PATTERN, CLUSTER": ("pattern", "cluster"),
    "CIFAR10, MNIST superpixels": ("cifar10", "mnist"),
    "MalNet-Tiny": ("malnettiny",),
    "PascalVOC-SP, COCO-SP": ("vocsuperpixels", "cocosuperpixels"),
    "PCQM-Contact": ("pcqm-contact",),
    "Actor, WebKB, WikipediaNetwork": ("actor", "webkb", "wn"),
}


def why_not(file: Path) -> tuple[str, str]:
    """Why a config does not load, and why it does not train; empty where it does."""
    try:
        cfg = config.load(file)
    except UserError as error:
        return str(error), str(error)
    try:
        spec = data.spec(cfg)
        networks.build(cfg, (spec and spec.dim_in) or 1, (spec and spec.dim_out) or 1)
    except UserError as error:
        return "", str(error)
    return "", ""


def main() -> None:
    """Print the table, and with ``--reasons`` why each config does not load or train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="folder of a GraphGPS checkout")
    parser.add_argument("--reasons", action="store_true", help="also say why, config by config")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    register()
    files = sorted((args.checkout / "configs").rglob("*.yaml"))
    reasons = {file: why_not(file) for file in files}
    total: Counter[str] = Counter()
    print("| dataset family | configs | load | train |\n|---|---|---|---|")
    for title, starts in FAMILIES.items():
        ours = [file for file in files if file.name.startswith(starts)]
        loads = sum(not reasons[file][0] for file in ours)
        trains = sum(not reasons[file][1] for file in ours)
        total.update(configs=len(ours), load=loads, train=trains)
        print(f"| {title} | {len(ours)} | {loads} | {trains} |")
    print(f"| all | {total['configs']} | {total['load']} | {total['train']} |")
    if args.reasons:
        for file, (load, train) in reasons.items():
            if train:
                verdict = "does not load" if load else "does not train"
                print(f"{file.relative_to(args.checkout)}: {verdict}: {train}")


if __name__ == "__main__":
    main()
