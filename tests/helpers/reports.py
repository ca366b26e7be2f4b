"""Run folders made up for the tests of reports."""

import json

from graphgps_pearl.report.comparison import compare_all
from graphgps_pearl.report.groups import grouped
from graphgps_pearl.runs.results import find_runs

ZINC = "format: PyG-ZINC, name: subset"


def write(folder, name, encoder, seed, test, val=0.25, data=ZINC, metric="mae", **settings) -> None:
    """A run; finished if it has a test value."""
    path = folder / name / str(seed)
    path.mkdir(parents=True)
    more = "".join(f"{key}: {value}\n" for key, value in settings.items())
    text = f"dataset: {{{data}, node_encoder_name: {encoder}}}\noptim: {{max_epoch: 3}}\n{more}"
    (path / "config.yaml").write_text(text)
    (path / "metrics.csv").write_text(
        f"epoch,seconds,train_{metric},val_{metric},test_{metric}\n0,36,0.9,0.8,0.7\n1,36,0.5,0.6,\n"
    )
    best = {"epoch": 1, f"train_{metric}": 0.1, f"val_{metric}": val, f"test_{metric}": test}
    result = {
        "config": name,
        "seed": seed,
        "splits": ["train", "val", "test"],
        "metric": f"val_{metric}",
        "larger_is_better": metric != "mae",
        "best": best,
        "epochs": 3,
        "parameters": {"encoder": 100, "local": 200, "head": 50},
        "seconds_per_epoch": 2.0,
        "prepare_seconds": 1.0,
        "memory_mb": 300.0,
    }
    if test is not None:
        (path / "result.json").write_text(json.dumps(result))


def comparisons(folder, **settings):
    """The comparisons of a folder's runs."""
    return compare_all(grouped(find_runs(folder)), **settings)
