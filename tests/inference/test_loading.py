"""What is no model is refused in one line."""

import json
import shutil

from helpers.inference import CONFIGS, one_error

from graphgps_pearl import cli


def test_models_that_are_none_are_one_line(trained, model, tmp_path, capsys):
    source = tmp_path / "m.smi"
    source.write_text("CCO\n")
    junk = tmp_path / "junk.ckpt"
    junk.write_bytes(b"junk")
    run = trained("Atom+BPEARL")
    shutil.copy(run / "config.yaml", tmp_path / "config.yaml")
    (tmp_path / "empty").mkdir()
    for path, complaint in (
        ("wehi-log", "no such model"),
        (junk, "is damaged, or was not written by graphgps_pearl"),
        (tmp_path / "empty", "neither a model folder"),
        (run.parent, "holds the runs 0"),
        (CONFIGS / "quickstart.yaml", "is a config, which has no weights"),
        (tmp_path, "has no checkpoint"),
    ):
        assert cli.main(["predict", str(path), str(source)]) == 2
        assert complaint in one_error(capsys)


def test_damaged_and_foreign_model_folders_are_one_line(model, tmp_path, capsys):
    source = tmp_path / "m.smi"
    source.write_text("CCO\n")
    folder = tmp_path / "model"
    description = json.loads((model / "model.json").read_text())

    def damaged(file: str, content: bytes) -> str:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(model, folder)
        (folder / file).write_bytes(content)
        assert cli.main(["predict", str(folder), str(source)]) == 2
        return one_error(capsys)

    for version in (1, 0, "2", None):
        changed = json.dumps({**description, "format_version": version}).encode()
        assert f"format_version is {str(version)!r}, this graphgps_pearl reads 2" in damaged(
            "model.json", changed
        )
    assert "get the model again" in damaged("model.json", b"{")
    changed = json.dumps({**description, "target_mean": [1.0]}).encode()
    assert "its checksum differs" in damaged("model.json", changed)
    weights = (model / "model.safetensors").read_bytes()
    assert "get the model again" in damaged("model.safetensors", weights[:1000])
