"""Config files and command-line overrides to a checked, frozen config, and from there to text or to GraphGym.

Every mistake is one :class:`ConfigError` of one line that names the file and line, the key, its value, what
is allowed, and the nearest key where the key is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from yacs.config import CfgNode

from graphgps_pearl.config.key import BadValueError, Scalar, Value, as_written
from graphgps_pearl.config.posenc import kernel_times
from graphgps_pearl.config.resolving import resolve
from graphgps_pearl.config.rules import check
from graphgps_pearl.config.schema import RENAMED, SCHEMA, SECTIONS, defaults, get, nearest, put
from graphgps_pearl.config.shipped import SUFFIXES, find, names, shown
from graphgps_pearl.config.unused import READ_BY_GRAPHGYM
from graphgps_pearl.config.yaml_text import MAX_BYTES, parse_yaml, to_yaml
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.vocabulary import MESSAGE_PASSING, NETWORKS

log = logging.getLogger(__name__)
COMMAND_LINE = "command line"


@dataclass(frozen=True)
class Setting:
    """One key as it was set; of the layers 0 (defaults), 1 (file) and 2 (command line) the last wins."""

    key: str
    raw: object
    where: str
    layer: int


def load(path: str | Path, overrides: Iterable[object] = ()) -> CfgNode:
    """Load a YAML file of deltas from the defaults, then ``KEY VALUE`` overrides; checked and frozen.

    Args:
        path: the file, or the name of a shipped config (``zinc-bpearl``); with ``base: OTHER.yaml`` a file
            holds deltas from that file, which is in the same folder.
        overrides: alternating keys and values, as on the command line: ``["gt.layers", "4", "seed", 1]``.
    """
    settings = [*file_settings(find(path)), *_pairs(overrides)]
    return _finish(defaults(), settings, {}, _clip(shown(path), 300))


def file_settings(path: Path, above: tuple[Path, ...] = ()) -> list[Setting]:
    """What a file sets, after what its ``base`` sets; ``above`` are the files that build on it."""
    name = _clip(shown(path), 300)
    if path in above:
        raise ConfigError(f"{name}: base: the files {', '.join(p.name for p in above)} build on each other")
    tree = _tree(_read(path), name)
    base = tree.pop("base", None)
    below = file_settings(_beside(path, base.value, name), (*above, path)) if base is not None else []
    return [*below, *_flatten(tree, name)]


def _beside(path: Path, raw: object, name: str) -> Path:
    """The file that ``base`` names: in the folder of ``path`` and nowhere else."""
    if not isinstance(raw, Scalar) or not raw.text or Path(raw.text).name != raw.text:
        raise ConfigError(f"{name}: base = {_shown(raw)}: expected the name of a file in the same folder")
    found = path.with_name(raw.text)
    if not found.exists() and found.stem in names():
        copied = f"graphgps-pearl configs {found.stem} --copy {raw.text}"
        raise ConfigError(f"{name}: base = {raw.text}: no such file beside it; {copied} puts it there")
    return found


def parse(text: str, overrides: Iterable[object] = (), name: str = "config") -> CfgNode:
    """:func:`load` for text without a ``base``; ``name`` is what messages call it."""
    return _finish(defaults(), [*_flatten(_tree(text, name), name), *_pairs(overrides)], {}, name)


def _tree(text: str, name: str) -> dict[str, Any]:
    tree = parse_yaml(text, name)
    if not isinstance(tree, dict):
        problem = "is empty" if tree == Scalar("") else "is not a config"
        raise ConfigError(
            f"{name}: {problem}; expected keys and values such as 'model:' over '  type: GPSModel'"
        )
    return tree


def override(cfg: CfgNode, overrides: Iterable[object]) -> CfgNode:
    """A copy of a config with ``KEY VALUE`` overrides; checked and frozen."""
    copy = cfg.clone()
    copy.defrost()
    return _finish(copy, list(_pairs(overrides)), dict.fromkeys(SCHEMA, 1), COMMAND_LINE)


def runs(cfg: CfgNode, repeat: int = 1) -> list[tuple[int, CfgNode]]:
    """(folder name, config) of every run: one per seed, or one per split of ``run_multiple_splits``."""
    folds = cfg.run_multiple_splits
    if not folds:
        return [(cfg.seed + i, override(cfg, ["seed", cfg.seed + i])) for i in range(repeat)]
    if repeat > 1:
        raise ConfigError("--repeat goes with one split; run_multiple_splits already names several runs")
    return [(fold, override(cfg, ["dataset.split_index", fold])) for fold in folds]


def read(key: str, text: str) -> Value:
    """The value that ``KEY TEXT`` on the command line would give a key, by itself."""
    (setting,) = _pairs([key, text])
    return _value(setting)


def _value(setting: Setting) -> Value:
    try:
        return SCHEMA[setting.key].read(setting.raw)
    except BadValueError as error:
        raise ConfigError(f"{setting.where}: {setting.key} = {_shown(setting.raw)}: {error}") from None


def dump(cfg: CfgNode) -> str:
    """The whole config as YAML; loading it gives an equal config."""
    return to_yaml(_plain(cfg))


def unused(cfg: CfgNode) -> list[str]:
    """Keys that differ from their defaults and that nothing here uses."""
    ours = (
        cfg.gnn.layer_type in MESSAGE_PASSING
        if cfg.model.type == "custom_gnn"
        else cfg.model.type in NETWORKS
    )
    ignored = {key for key, entry in SCHEMA.items() if not (entry.used or entry.always)}
    ignored -= set() if ours else READ_BY_GRAPHGYM.keys()
    return [key for key in SCHEMA if key in ignored and get(cfg, key) != SCHEMA[key].default]


def activate(cfg: CfgNode, dim_in: int | None = None, dim_out: int | None = None) -> None:
    """Copy a config into GraphGym's global one, with what GraphGym and upstream's main derive from it.

    GraphGym's config is set up anew first, so groups that a third party added with ``register_config`` are
    there with their defaults, and nothing of an earlier config is left. ``dim_in`` and ``dim_out`` (columns
    of the node features, number of outputs) go to ``cfg.share``. The config given is not changed.
    """
    from torch_geometric.graphgym.config import cfg as target
    from torch_geometric.graphgym.config import set_cfg

    target.defrost()
    set_cfg(target)
    _copy(cfg, target)
    target["run_dir"] = cfg.run_dir or cfg.out_dir
    target.gnn["layers_post_mp"] = max(1, cfg.gnn.layers_post_mp)
    if cfg.gnn.head == "default":
        target.gnn["head"] = cfg.dataset.task
    if cfg.dataset.task == "graph":
        target.dataset["transductive"] = False
    target.posenc_RWSE.kernel["times"] = kernel_times(cfg.posenc_RWSE.kernel)
    if dim_in is not None:
        target.share["dim_in"] = dim_in
    if dim_out is not None:
        target.share["dim_out"] = dim_out


def _copy(source: CfgNode, target: CfgNode) -> None:
    for key, value in source.items():
        if isinstance(value, CfgNode):
            if not isinstance(target.get(key), CfgNode):
                target[key] = CfgNode()
            _copy(value, target[key])
        else:
            target[key] = list(value) if isinstance(value, list) else value


def _finish(cfg: CfgNode, settings: list[Setting], layers: dict[str, int], name: str) -> CfgNode:
    for setting in settings:
        put(cfg, setting.key, _value(setting))
        layers[setting.key] = setting.layer
    notes = list(resolve(cfg, layers, name))
    check(cfg, name)
    ignored = [key for key in unused(cfg) if any(setting.key == key for setting in settings)]
    if ignored:
        notes.append(f"accepted, but not used here: {', '.join(ignored)}")
    idle = [s.key for s in settings if s.where == COMMAND_LINE and _of_an_absent_encoding(cfg, s.key)]
    if idle:
        notes.append(
            f"without effect, as dataset.node_encoder_name names no such encoding: {', '.join(idle)}"
        )
    for note in notes:
        say_once(f"{name}: {note}")
    cfg.freeze()
    return cfg


def _of_an_absent_encoding(cfg: CfgNode, key: str) -> bool:
    group, _, name = key.partition(".")
    encoding = group.startswith("posenc_") and cfg.dataset.node_encoder
    return encoding and name != "enable" and not cfg[group].get("enable", True)


@lru_cache(maxsize=1000)
def say_once(message: str) -> None:
    """Log a note about a config the first time it is loaded: a command may load a file several times."""
    log.warning(message)


def _present_name(key: str) -> str:
    """The key that an old name stands for, else the name itself."""
    if key not in RENAMED:
        return key
    say_once(f"{key} is now {RENAMED[key]}; the old name still loads")
    return RENAMED[key]


def _flatten(tree: dict[str, Any], name: str, prefix: str = "") -> Iterator[Setting]:
    for word, entry in tree.items():
        key, where = f"{prefix}{word}", f"{name}:{entry.line}"
        new = RENAMED.get(key, "").removeprefix(prefix)
        if new in tree:
            raise ConfigError(f"{where}: {key}: is the old name of {prefix}{new}, which is set as well")
        key = _present_name(key)
        if key in SCHEMA:
            if "." in word:
                raise ConfigError(
                    f"{where}: {_shown(word)}: write a key inside its group, not with a dot in its name"
                )
            yield Setting(key, entry.value, where, layer=1)
        elif key in SECTIONS:
            if isinstance(entry.value, dict):
                yield from _flatten(entry.value, name, f"{key}.")
            elif entry.value != Scalar(""):
                raise _not_a_key(key, entry.value, where)
        else:
            raise _not_a_key(key, entry.value, where)


def _pairs(overrides: Iterable[object]) -> Iterator[Setting]:
    pairs = list(overrides)
    if len(pairs) % 2:
        raise ConfigError(
            f"{COMMAND_LINE}: {_shown(pairs[-1])}: expected pairs KEY VALUE, such as optim.base_lr 0.001"
        )
    for word, value in zip(pairs[::2], pairs[1::2], strict=True):
        key = _present_name(str(word))
        if key not in SCHEMA:
            raise _not_a_key(key, value, COMMAND_LINE)
        # Text is taken as it is; everything else may be written as in a file.
        as_in_file = isinstance(value, str) and SCHEMA[key].type is not str
        raw = parse_yaml(str(value), f"{COMMAND_LINE}: {key}") if as_in_file else value
        yield Setting(key, raw, COMMAND_LINE, layer=2)


def _not_a_key(key: str, raw: object, where: str) -> ConfigError:
    if key in SECTIONS:
        inside = [k for k, entry in SCHEMA.items() if k.startswith(f"{key}.") and entry.used]
        keys = ", ".join(inside or ["nothing that is used here"])
        return ConfigError(f"{where}: {key} = {_shown(raw)}: is a group, not a key; it has {keys}")
    return ConfigError(f"{where}: {_clip(key)} = {_shown(raw)}: unknown key; {nearest(key)}")


def _shown(raw: object) -> str:
    raw = as_written(raw)
    if isinstance(raw, Scalar):
        return _clip(raw.text) if raw.text else "''"
    if isinstance(raw, list):
        return _clip(
            "[" + ", ".join(_shown(item) for item in raw[:20]) + (", ...]" if len(raw) > 20 else "]")
        )
    return "{...}" if isinstance(raw, dict) else _clip(str(raw))


def _clip(text: str, most: int = 60) -> str:
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= most else text[: most - 3] + "..."


def _read(path: Path) -> str:
    name = _clip(shown(path), 300)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{name}: no such file{_near_file(path)}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: is not UTF-8 text (byte {error.start})") from None


def _near_file(path: Path) -> str:
    if path.stem in names():
        return f"; did you mean {path.stem}, which comes with the package?"
    try:
        neighbours = [other.name for other in path.parent.iterdir() if other.suffix in SUFFIXES]
    except OSError:
        return ""
    near = get_close_matches(path.name, neighbours, n=1)
    return f"; did you mean {path.parent / near[0]}?" if near else ""


def _plain(node: CfgNode) -> dict[str, Any]:
    return {key: _plain(value) if isinstance(value, CfgNode) else value for key, value in node.items()}
