"""Configs by name: a file wins, shipped ones are found from anywhere, and wrong names suggest the nearest."""

from pathlib import Path

import pytest

from graphgps_pearl import cli, config
from graphgps_pearl.config import shipped

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_name_is_the_shipped_config():
    assert config.find("zinc-bpearl") == REPOSITORY / "configs" / "zinc-bpearl.yaml"
    assert config.load("zinc-bpearl") == config.load(REPOSITORY / "configs" / "zinc-bpearl.yaml")


def test_messages_call_it_by_its_name(monkeypatch):
    with pytest.raises(config.ConfigError, match=r"^zinc-bpearl: gt.n_heads"):
        config.load(config.find("zinc-bpearl"), ["gt.n_heads", "5"])
    monkeypatch.chdir(REPOSITORY)
    with pytest.raises(config.ConfigError, match=r"^configs/zinc-bpearl.yaml: gt.n_heads"):
        config.load("configs/zinc-bpearl.yaml", ["gt.n_heads", "5"])


@pytest.mark.parametrize("file", ("quickstart", "quickstart.yaml"))
def test_a_file_of_that_name_wins(file):
    Path(file).write_text("seed: 17\n")
    assert config.find("quickstart") == Path(file)
    assert config.load("quickstart").seed == 17


def test_a_folder_of_that_name_does_not():
    Path("quickstart").mkdir()
    assert config.find("quickstart").name == "quickstart.yaml"


@pytest.mark.parametrize(
    ("word", "suggestion"), [("zinc-bperl", "zinc-bpearl?"), ("???", "'graphgps-pearl configs'")]
)
def test_unknown_names_suggest_the_nearest(word, suggestion):
    with pytest.raises(config.ConfigError) as error:
        config.load(word)
    assert word in str(error.value) and suggestion in str(error.value)


def test_a_path_that_is_missing_suggests_the_shipped_name():
    with pytest.raises(config.ConfigError, match=r"configs/zinc-bpearl.yaml: no such file.* zinc-bpearl,"):
        config.load("configs/zinc-bpearl.yaml")


def test_the_list_has_a_sentence_for_each(capsys):
    assert cli.main(["configs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(f.stem for f in (REPOSITORY / "configs").iterdir())
    for line in lines:
        assert line.split(maxsplit=1)[1][-1] in ".", line


@pytest.mark.parametrize("name", shipped.names())
def test_a_copy_is_the_same_config_in_one_file(name, capsys):
    assert cli.main(["configs", name, "--copy"]) == 0
    assert f"{name}.yaml" in capsys.readouterr().out
    text = Path(f"{name}.yaml").read_text()
    assert "\nbase:" not in text
    assert config.load(f"{name}.yaml") == config.load(shipped.folder() / f"{name}.yaml")


def test_a_copy_overwrites_nothing(capsys):
    mine = Path("quickstart.yaml")
    mine.write_text("seed: 17\n")
    assert cli.main(["configs", "quickstart", "--copy"]) == 2
    assert "quickstart.yaml" in capsys.readouterr().err
    assert mine.read_text() == "seed: 17\n"
    assert cli.main(["configs", "quickstart", "--copy", "other.yaml"]) == 0
    assert config.load("other.yaml") == config.load(shipped.folder() / "quickstart.yaml")


def test_show_and_wrong_use(capsys):
    assert cli.main(["configs", "zinc-rwse"]) == 0
    assert "range(1,21)" in capsys.readouterr().out
    assert cli.main(["configs", "zinc-rswe"]) == 2
    assert "zinc-rwse" in capsys.readouterr().err
    assert cli.main(["configs", "--copy"]) == 2


def test_a_shipped_config_is_not_marked_done(capsys):
    assert cli.train(["--cfg", "quickstart", "--mark_done"]) == 2
    assert "--mark_done" in capsys.readouterr().err
    assert (shipped.folder() / "quickstart.yaml").is_file()
