"""The scripts in ``run/``: they parse, and what they name exists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.upstream_configs import ZINC_RWSE

REPOSITORY = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- begin: made by scripts/upstream_configs.py -->\n", "<!-- end -->\n"
SCRIPTS = sorted((REPOSITORY / "run").glob("*.sh"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse_and_name_configs_that_exist(script):
    subprocess.run(["bash", "-n", script], check=True)
    text = script.read_text()
    for name in re.findall(r"configs/[a-z][\w.-]+\.yaml", text):
        assert (REPOSITORY / name).is_file(), name


def test_experiments_name_configs_of_every_dataset():
    script = (REPOSITORY / "run" / "experiments.sh").read_text()
    cases = dict(re.findall(r"^    ([a-z*|-]+)\) encoders=\"(.*)\" ;;$", script, re.MULTILINE))
    datasets = {
        "*": ("zinc", "peptides", "peptides-func", "drugood"),
        "csl": ("csl",),
        "reddit-*": ("reddit-b", "reddit-m"),
    }
    assert cases.keys() == datasets.keys()
    for case, encoders in cases.items():
        for dataset in datasets[case]:
            for encoder in encoders.split():
                assert (REPOSITORY / "configs" / f"{dataset}-{encoder}.yaml").is_file()


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["experiments.sh", "csl"], ["compare configs/csl-none.yaml configs/csl-rpearl.yaml"]),
        (
            ["experiments.sh", "reddit-m"],
            ["compare configs/reddit-m-none.yaml configs/reddit-m-randomid.yaml"],
        ),
        (["experiments.sh", "zinc", "seed", "3"], ["--seeds 4 --baseline zinc-none seed 3"]),
        (["ablation.sh", "taps"], ["posenc_BPEARL.num_taps 12", "posenc_RPEARL.num_taps 2"]),
        (["ablation.sh", "layers", "optim.max_epoch", "9"], ["optim.max_epoch 9 posenc_BPEARL.num_layers 3"]),
        (["ablation.sh", "backbone"], ["compare configs/zinc-bpearl-gine-487k.yaml"]),
        (["ablation.sh", "parameters"], ["compare configs/zinc-bpearl-gine-487k.yaml"]),
        (
            ["ablation.sh", "pairs", "optim.max_epoch", "30"],
            [
                "optim.max_epoch 30 posenc_BPEARL.gso sym_laplacian posenc_BPEARL.num_taps 8",
                "posenc_BPEARL.pair_edges False name_tag random_walk-20-sum-self",
                "posenc_BPEARL.pair_bias shared name_tag pair_bias-shared",
            ],
        ),
        (
            [
                "ablation.sh",
                "configs/quickstart.yaml",
                "gt.layers",
                "2",
                "--",
                "seed",
                "3",
                "out_dir",
                "there",
            ],
            ["seed 3 out_dir there gt.layers 2 name_tag layers-2\n", "report there quickstart-layers-2\n"],
        ),
        (
            ["ablation.sh", "samples", "out_dir", "there"],
            ["out_dir there", "evaluate-samples there/zinc-rpearl-gine-644k/0"],
        ),
        (
            ["ablation.sh", "samples", "name_tag", "mine", "seed", "3"],
            ["evaluate-samples results/zinc-rpearl-gine-644k-mine/3"],
        ),
        (["ablation.sh", "samples"], ["--cfg configs/zinc-rpearl-gine-644k.yaml", "evaluate-samples"]),
        (
            ["ablation.sh", "configs/quickstart.yaml", "gt.layers", "2", "3"],
            ["gt.layers 2 name_tag layers-2", "report results quickstart-layers-2 quickstart-layers-3"],
        ),
    ],
    ids=lambda value: " ".join(value),
)
def test_scripts_start_what_they_say(tmp_path, words, runs):
    """With a Python that only writes down what it is asked to do, and takes configs that load."""
    script = tmp_path / "run" / words[0]
    script.parent.mkdir()
    script.write_text((REPOSITORY / "run" / words[0]).read_text())
    (tmp_path / "configs").symlink_to(REPOSITORY / "configs")
    (tmp_path / "run" / "_environment.sh").write_text(f"cd {tmp_path}; PYTHON='echo'\n")
    done = subprocess.run(["bash", script, *words[1:]], capture_output=True, text=True, check=True)
    for run in runs:
        assert run in done.stdout
    for name in re.findall(r"configs/[a-z][\w.-]+\.yaml", done.stdout):
        assert (REPOSITORY / name).is_file(), name


def test_ci_runs_the_readmes_test_command():
    readme = (REPOSITORY / "README.md").read_text()
    assert "./run/test.sh" in readme
    assert "exec ./run/test.sh" in (REPOSITORY / ".ci" / "run").read_text()


def test_upstream_configs_are_counted(tmp_path):
    folder = tmp_path / "configs" / "GPS"
    folder.mkdir(parents=True)
    (folder / "zinc-GPS+RWSE.yaml").write_text(ZINC_RWSE)
    (folder / "zinc-GPSwGraphormer.yaml").write_text(ZINC_RWSE.replace("+Transformer", "+BiasedTransformer"))
    (folder / "actor-GPS.yaml").write_text(ZINC_RWSE.replace("PyG-ZINC", "PyG-Actors"))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    script = REPOSITORY / "scripts" / "upstream_configs.py"
    words = [sys.executable, script, tmp_path, "--write", page]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| ZINC | 2 | 1 | 1 |" in text
    assert "| Actor, WebKB, WikipediaNetwork | 1 | 1 | 0 |" in text
    assert "| all | 3 | 2 | 1 |" in text
    assert "| `GPS/zinc-GPSwGraphormer.yaml` | does not load: gt.layer_type" in text
    assert "'PyG-Actors'" in text


def test_the_page_has_the_script_s_tables():
    text = (REPOSITORY / "docs" / "coming-from-graphgps.md").read_text()
    table = text.partition(BEGIN)[2].partition(END)[0]
    _, load, train = map(int, re.search(r"\| all \| (\d+) \| (\d+) \| (\d+) \|", table).groups())
    assert load >= 78 and train >= 60
