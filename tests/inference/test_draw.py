"""``encode``: encodings as columns and as pictures."""

import numpy as np
import pytest
from helpers.inference import CONFIGS, one_error
from PIL import Image

from graphgps_pearl import cli
from graphgps_pearl.inference.loading import load


def test_encode_writes_and_draws(trained, tmp_path, capsys):
    source, out, picture = tmp_path / "m.smi", tmp_path / "e.npz", tmp_path / "e.png"
    source.write_text("CCO\nC(\nc1ccccc1CC\n")
    words = ["-o", str(out), "--draw", str(picture)]
    run = str(trained("Atom+RWSE+BPEARL"))
    capsys.readouterr()
    assert cli.main(["encode", run, str(source), *words]) == 2
    assert "name the one to draw: RWSE, BPEARL" in one_error(capsys)
    assert cli.main(["encode", run, str(source), *words, "--encoding", "BPEARL"]) == 1
    assert "2 of 3 molecules encoded, 1 could not be: the first is row 2" in one_error(capsys)
    with np.load(out) as arrays:
        assert arrays["starts"].tolist() == [0, 3, 3, 11]
        assert arrays["smiles"].tolist() == ["CCO", "C(", "c1ccccc1CC"]
        assert arrays["BPEARL"].shape == arrays["RWSE"].shape == (11, 8)
        found = load(run, "cpu").encode(["CCO"]).arrays["BPEARL"][0]
        np.testing.assert_allclose(arrays["BPEARL"][:3], found, atol=1e-5)
    with Image.open(picture) as image:
        assert image.size == (2 * 340, 300)
        colours = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
        # Red and blue atoms, and not only black bonds on white.
        assert ((colours[:, 0] - colours[:, 2]) > 60).any()
        assert ((colours[:, 2] - colours[:, 0]) > 60).any()


def test_encode_a_config_and_its_mistakes(tmp_path, capsys):
    source = tmp_path / "m.smi"
    source.write_text("CCO\n")
    quickstart = str(CONFIGS / "quickstart.yaml")
    assert cli.main(["encode", quickstart, str(source), "-o", str(tmp_path / "e.npz")]) == 0
    assert "untrained" in capsys.readouterr().err
    assert cli.main(["encode", quickstart, str(source), "-o", str(tmp_path / "e.txt")]) == 2
    assert "ends in .npz" in one_error(capsys)
    words = ["--draw", str(tmp_path / "e.png"), "--component", "99"]
    assert cli.main(["encode", quickstart, str(source), *words]) == 2
    assert "0 to 15" in capsys.readouterr().err
    config = str(CONFIGS / "peptides-none.yaml")
    assert cli.main(["encode", config, str(source), "-o", str(tmp_path / "e.npz")]) == 2
    assert "has no positional encoding" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["encode", quickstart, str(source)])
