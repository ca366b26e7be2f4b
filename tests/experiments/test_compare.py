"""``compare``: which runs it plans, and how it ends."""

from pathlib import Path

import pytest

from graphgps_pearl import config
from graphgps_pearl.experiments import compare as compare_module
from graphgps_pearl.experiments.compare import compare as compare_command
from graphgps_pearl.experiments.compare import plan, with_encoders


def test_folds_are_not_multiplied_by_seeds(capsys):
    file = Path(__file__).resolve().parents[2] / "configs" / "csl-none.yaml"
    assert compare_command([str(file), "--seeds", "2"]) == 2
    assert "csl-none.yaml has a run for each of run_multiple_splits already" in capsys.readouterr().err
    assert [job.folder.name for job in plan([file], 1, [])] == ["0"]


def test_encoders_take_their_settings_from_the_config_beside_the_base():
    base = Path(__file__).resolve().parents[2] / "configs" / "zinc-bpearl.yaml"
    chosen = with_encoders(base, ["none", "LapPE", "RWSE", "BPEARL", "RandomID"], ["seed", "5"])
    assert [file.name for file, _ in chosen] == [
        "zinc-none.yaml",
        "zinc-lappe-8s.yaml",
        "zinc-rwse.yaml",
        "zinc-bpearl.yaml",
        "zinc-bpearl.yaml",
    ]
    assert chosen[-1][1] == [
        "seed",
        "5",
        "dataset.node_encoder_name",
        "TypeDictNode+RandomID",
        "name_tag",
        "RandomID",
    ]


@pytest.mark.parametrize(
    "line",
    (
        "--base quickstart --encoders none BPEARL --seeds 2 seed 5",
        "--seeds 2 --base quickstart --encoders none BPEARL seed 5",
        "quickstart csl-none run_multiple_splits [] --seeds 2 seed 5",
        "quickstart seed 5 --seeds 2 {configs}/csl-none.yaml run_multiple_splits []",
    ),
)
def test_configs_by_name(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare_module, "_endings", lambda jobs, at_once: iter(planned.extend(jobs) or ()))
    monkeypatch.setattr(compare_module, "show", lambda *args: None)
    planned: list[compare_module.Job] = []
    configs = Path(__file__).resolve().parents[2] / "configs"
    assert compare_command(line.format(configs=configs).split()) == 0
    assert [job.seed for job in planned] == [5, 5, 6, 6]
    assert {job.file.parent for job in planned} == {configs}


def test_a_wrong_name_suggests_the_nearest(capsys):
    assert compare_command(["zinc-none", "zinc-rswe", "seed", "1"]) == 2
    assert "zinc-rswe" in (said := capsys.readouterr().err) and "zinc-rwse" in said


def test_encoders_go_into_the_network_of_the_base():
    base = Path(__file__).resolve().parents[2] / "configs" / "zinc-bpearl-gine-487k.yaml"
    chosen = with_encoders(base, ["none", "RPEARL", "BPEARL"], [])
    assert chosen[-1] == (base, [])  # its own encoder: as it is
    networks = [config.load(file, words).gnn for file, words in chosen]
    assert networks[0] == networks[1] == networks[2]

    paper = base.with_name("zinc-bpearl-paper.yaml")
    assert with_encoders(paper, ["BPEARL"], []) == [(paper, [])]
    assert with_encoders(paper, ["RWSE"], []) == [(base.with_name("zinc-rwse.yaml"), [])]


def test_a_comparison_with_failures_does_not_end_well(tmp_path, capsys):
    base = Path(__file__).resolve().parents[2] / "configs" / "quickstart.yaml"
    words = ["dataset.subset", "40", "optim.max_epoch", "1", "optim.num_warmup_epochs", "0"]
    words += ["train.max_params", "200000", "out_dir", str(tmp_path)]
    large = tmp_path / "large.yaml"
    large.write_text(base.read_text().replace(": 48", ": 480"))
    assert compare_command([str(base), str(large), *words]) == 2
    shown = capsys.readouterr()
    assert "large, seed 0: failed, error: train.max_params" in shown.out
    assert "best test mae" in shown.out
    assert "1 of 2 runs failed" in shown.err


def test_words_may_stand_right_behind_the_encoders(tmp_path, monkeypatch, capsys):
    planned = []
    monkeypatch.setattr(
        "graphgps_pearl.experiments.compare._endings", lambda jobs, _: planned.extend(jobs) or []
    )
    monkeypatch.setattr("graphgps_pearl.experiments.compare.show", lambda *_: None)
    base = Path(__file__).resolve().parents[2] / "configs" / "quickstart.yaml"
    words = ["optim.base_lr", "0.1", "out_dir", str(tmp_path)]
    assert compare_command(["--base", str(base), "--encoders", "none", "BPEARL", *words]) == 0
    assert [job.folder for job in planned] == [tmp_path / f"quickstart-{e}" / "0" for e in ("none", "BPEARL")]
    assert all(job.words[:4] == tuple(words) for job in planned)
    assert capsys.readouterr().out.splitlines() == [f"none: {base}", f"BPEARL: {base}"]
