"""Train R-PEARL and B-PEARL inside an unmodified checkout of rampasek/GraphGPS.

    python -m graphgps_pearl.upstream PATH/TO/GraphGPS/main.py --cfg configs/GPS/zinc-GPS+RWSE.yaml \\
        wandb.use False dataset.node_encoder_name TypeDictNode+BPEARL posenc_RWSE.enable False

The checkout's ``main.py`` runs as if it had been started itself, with its own encoders, network, data and
training. Before that, this launcher imports ``graphgps``, registers our two encodings and their compositions
beside its names, and bridges what upstream (February 2023) lacks on today's libraries. Each bridge replaces
one name, in upstream's own modules where that is possible, says why it exists, and does nothing where it is
not needed.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import runpy
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

ENCODINGS = ("RPEARL", "BPEARL")
USAGE = "usage: python -m graphgps_pearl.upstream PATH/TO/GraphGPS/main.py --cfg FILE [KEY VALUE ...]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run upstream's ``main.py`` with our encodings registered; the exit code if it cannot be started."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    script = Path(arguments[0]).resolve() if arguments else Path()
    if not arguments or arguments[0] in ("-h", "--help"):
        return _stop(USAGE, code=0 if arguments else 2)
    if not script.is_file():
        return _stop(f"{arguments[0]}: no such file; {USAGE}")
    if not (script.parent / "graphgps" / "__init__.py").is_file():
        return _stop(
            f"{script}: there is no package graphgps next to it; is this a GraphGPS checkout? {USAGE}"
        )
    sys.argv = [str(script), *arguments[1:]]
    sys.path.insert(0, str(script.parent))
    try:
        prepare(arguments[1:])
    except ModuleNotFoundError as error:
        package = str(error.name).replace("_", "-")
        return _stop(f"GraphGPS itself needs the package {package}: pip install {package}")
    runpy.run_path(str(script), run_name="__main__")
    return 0


def _stop(line: str, code: int = 2) -> int:
    sys.stderr.write(line + "\n")
    return code


def prepare(arguments: Sequence[str] = ()) -> None:
    """Bridge, import upstream, register our encodings beside it; ``graphgps`` has to be importable."""
    bridge_torch_scatter()
    bridge_distutils()
    importlib.import_module("graphgps")
    from graphgps_pearl.registry import register, register_composition

    register(only=ENCODINGS)
    for name in requested_encoders(arguments):
        if set(name.split("+")) & set(ENCODINGS):
            register_composition(name)
    for bridge in BRIDGES:
        bridge()


def requested_encoders(arguments: Sequence[str]) -> list[str]:
    """Every ``node_encoder_name`` on the command line and in the config file.

    Compositions of up to two encodings are registered anyway; a longer one is known only from here.
    """
    import yaml

    split = [part for word in arguments for part in _split_option(word)]
    words = dict(pairwise(split))
    found = [words["dataset.node_encoder_name"]] if "dataset.node_encoder_name" in words else []
    file = Path(words.get("--cfg", ""))
    if file.is_file():
        try:
            tree = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (yaml.YAMLError, ValueError) as error:
            sys.exit(f"error: {file}: is not a YAML file in UTF-8 ({error})")
        if isinstance(tree, dict) and isinstance(tree.get("dataset"), dict):
            found.append(str(tree["dataset"].get("node_encoder_name", "")))
    return found


def _split_option(word: str) -> list[str]:
    """``--cfg=FILE`` is ``--cfg FILE``."""
    return word.split("=", 1) if word.startswith("--") else [word]


def bridge_torch_scatter() -> None:
    """A module ``torch_scatter`` made of PyG's ``scatter``.

    Why: ``graphgps`` imports it at the top, and there are no wheels of it for current torch. Upstream uses
    three of its functions. Not needed where the real one is installed.
    """
    if "torch_scatter" in sys.modules or importlib.util.find_spec("torch_scatter") is not None:
        return
    from torch import Tensor
    from torch_geometric.utils import scatter as pyg_scatter

    def scatter(
        src: Tensor,
        index: Tensor,
        dim: int = -1,
        out: Tensor | None = None,
        dim_size: int | None = None,
        reduce: str = "sum",
    ) -> Tensor:
        if out is None:
            return pyg_scatter(src, index, dim, dim_size, reduce)
        if reduce not in ("sum", "add"):
            raise NotImplementedError(f"torch_scatter.scatter(out=..., reduce={reduce!r}) is not bridged")
        return out.index_add_(dim, index.flatten(), src)

    def scatter_add(src: Tensor, index: Tensor, dim: int = -1, dim_size: int | None = None) -> Tensor:
        return pyg_scatter(src, index, dim, dim_size, "sum")

    def scatter_max(
        src: Tensor, index: Tensor, dim: int = -1, dim_size: int | None = None
    ) -> tuple[Tensor, None]:
        return pyg_scatter(src, index, dim, dim_size, "max"), None  # upstream ignores the positions

    module = ModuleType("torch_scatter", "Stand-in by graphgps_pearl.upstream.")
    vars(module).update(scatter=scatter, scatter_add=scatter_add, scatter_max=scatter_max)
    sys.modules["torch_scatter"] = module


def bridge_distutils() -> None:
    """A module ``distutils.version`` with the one name that upstream imports from it.

    Why: Python 3.12 dropped distutils. Not needed before, nor where setuptools brings its own copy.
    """
    if importlib.util.find_spec("distutils") is not None:
        return
    from packaging.version import Version

    version = ModuleType("distutils.version", "Stand-in by graphgps_pearl.upstream.")
    vars(version).update(LooseVersion=Version)
    package = ModuleType("distutils", "Stand-in by graphgps_pearl.upstream.")
    vars(package).update(version=version)
    sys.modules.update({"distutils": package, "distutils.version": version})


def bridge_posenc_stats() -> None:
    """Our names are dropped from upstream's list of statistics to precompute.

    Why: upstream asks ``compute_posenc_stats`` for every ``posenc_*`` group with ``enable: True``, and it
    raises on names that it does not know. PEARL has nothing to precompute.
    """
    loader: Any = importlib.import_module("graphgps.loader.master_loader")
    compute = loader.compute_posenc_stats

    def compute_posenc_stats(data: Any, pe_types: Iterable[str], **more: Any) -> Any:
        return compute(data, pe_types=[name for name in pe_types if name not in ENCODINGS], **more)

    loader.compute_posenc_stats = compute_posenc_stats


def bridge_mean_squared_error() -> None:
    """``graphgps.logger.mean_squared_error`` accepts ``squared=False`` again.

    Why: scikit-learn 1.6 removed the argument, with which upstream computes the RMSE of regression runs.
    """
    logger: Any = importlib.import_module("graphgps.logger")
    plain = logger.mean_squared_error
    if _accepts(plain, "squared"):
        return

    def mean_squared_error(true: Any, pred: Any, squared: bool = True) -> float:
        error = plain(true, pred)
        return error if squared else error**0.5

    logger.mean_squared_error = mean_squared_error


def bridge_reduce_on_plateau() -> None:
    """Upstream's ``optim.lr_scheduler.ReduceLROnPlateau`` accepts ``verbose`` again.

    Why: torch 2.7 removed the argument, which upstream sets.
    """
    optimizers: Any = importlib.import_module("graphgps.optimizer.extra_optimizers")
    optim = optimizers.optim
    plain = optim.lr_scheduler.ReduceLROnPlateau
    if _accepts(plain, "verbose"):
        return

    def reduce_lr_on_plateau(*args: Any, verbose: bool = False, **more: Any) -> Any:
        return plain(*args, **more)

    scheduler = _with(optim.lr_scheduler, ReduceLROnPlateau=reduce_lr_on_plateau)
    optimizers.optim = _with(optim, lr_scheduler=scheduler)


def bridge_shortest_path() -> None:
    """Upstream's ``nx.shortest_path(graph)`` is a dictionary again.

    Why: networkx 3.5 returns an iterator of pairs, which the Graphormer encoder indexes.
    """
    encoder: Any = importlib.import_module("graphgps.encoder.graphormer_encoder")
    plain = encoder.nx.shortest_path

    def shortest_path(*args: Any, **more: Any) -> Any:
        paths = plain(*args, **more)
        return paths if isinstance(paths, dict | list) else dict(paths)

    encoder.nx = _with(encoder.nx, shortest_path=shortest_path)


def bridge_processed_files() -> None:
    """``torch.load`` may build the three PyG classes that processed datasets are made of.

    Why: upstream's datasets load what they have processed with a plain ``torch.load``, which since torch 2.6
    builds tensors and listed classes only. It keeps refusing everything else.
    """
    import torch
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    torch.serialization.add_safe_globals([DataEdgeAttr, DataTensorAttr, GlobalStorage])


def bridge_peptides_targets() -> None:
    """``torch.Tensor([row])`` takes a row of a pandas table again, in upstream's Peptides-struct.

    Why: pandas 3 no longer reads ``row[0]`` as a position, which is how torch walks through a Series.
    """
    peptides: Any = importlib.import_module("graphgps.loader.dataset.peptides_structural")

    def tensor(rows: Iterable[Any]) -> Any:
        return peptides.torch.FloatTensor([list(row) for row in rows])

    peptides.torch = _with(peptides.torch, Tensor=tensor)


BRIDGES: tuple[Callable[[], None], ...] = (
    bridge_posenc_stats,
    bridge_mean_squared_error,
    bridge_reduce_on_plateau,
    bridge_shortest_path,
    bridge_processed_files,
    bridge_peptides_targets,
)


def _accepts(function: Callable[..., Any], argument: str) -> bool:
    return argument in inspect.signature(function).parameters


def _with(module: ModuleType, **names: Any) -> ModuleType:
    """A copy of a module with some names replaced; for everybody else the module stays as it is."""
    copy = ModuleType(module.__name__, module.__doc__)
    vars(copy).update(vars(module) | names)
    return copy


if __name__ == "__main__":
    sys.exit(main())
