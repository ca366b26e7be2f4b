"""One R-PEARL model with other numbers of samples: nothing is trained, and the error falls as it should."""

import errno
import json
import math
import shutil

import pytest
from helpers.small_runs import SmallRuns

from graphgps_pearl import cli
from graphgps_pearl.experiments import sample_evaluation, samples
from graphgps_pearl.report.command import report
from graphgps_pearl.report.molecules import draw
from graphgps_pearl.report.samples import Point, read


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> SmallRuns:
    runs = SmallRuns(tmp_path_factory.mktemp("samples"), tmp_path_factory.mktemp("datasets"))
    assert runs.train() == 0
    assert cli.main(["evaluate-samples", str(runs.path()), "--samples", "32", "2", "8", "--tables", "2"]) == 0
    return runs


def test_the_trained_number_of_samples_gives_the_runs_own_metric(trained):
    result = json.loads((trained.path() / "result.json").read_text())
    found = read(trained.path())
    assert found is not None
    name, points = found
    assert name == "test_mae"
    assert [(p.samples, p.table) for p in points] == [(m, t) for m in (2, 8, 32) for t in (0, 1)]
    assert points[0].metric == pytest.approx(result["best"]["test_mae"], abs=1e-5)  # M = 2, the table it uses


def test_the_error_falls_with_the_root_of_the_samples(trained):
    _, points = read(trained.path())
    mean = {m: sum(p.error for p in points if p.samples == m) / 2 for m in (2, 8, 32)}
    slope = math.log(mean[32] / mean[2]) / math.log(32 / 2)
    assert slope == pytest.approx(-0.5, abs=0.15)


def test_the_report_shows_the_curves_and_the_molecules(trained, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(trained.path().parents[1], results)
    assert report([str(results)]) == 0
    page = (results / "report.html").read_text()
    for caption in ("metric of trained R-PEARL", "relative error of their encodings", "small-run: RPEARL"):
        assert f'alt="{caption}' in page
    assert (results / "encoding-error-by-samples.png").read_bytes().startswith(b"\x89PNG")
    assert page.count("data:image/png;base64,") == 4 + 2 + 1


def test_molecules_are_coloured_by_the_runs_encoding(trained):
    pictures = draw(trained.path())
    assert list(pictures) == ["RPEARL"]
    assert pictures["RPEARL"].startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["wehi-logp"], "wehi-logp: has no R-PEARL; its node encoder is Atom+BPEARL"),
        (["nowhere"], "nowhere: no such model"),
        (["RUN/best.ckpt"], "best.ckpt: is a file; name the run folder"),
        (["RUN", "--samples", "0"], "expected whole numbers from 1 up"),
        (["RUN", "--split", "ood"], "there is no 'ood'; there are train, val, test"),
    ],
)
def test_mistakes_are_one_line(trained, capsys, overrides, said):
    overrides = [word.replace("RUN", str(trained.path())) for word in overrides]
    assert cli.main(["evaluate-samples", *overrides]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1


def test_a_folder_that_cannot_be_written_does_not_lose_the_table(tmp_path, monkeypatch, capsys):
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / "samples.csv"))

    points = [Point(5, 0, 0.25, 0.5)]
    monkeypatch.setattr(sample_evaluation, "evaluate", lambda *_: ("test_mae", points))
    monkeypatch.setattr(samples, "write", refuse)
    assert cli.main(["evaluate-samples", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert "0.2500" in shown.out
    assert "samples.csv: read-only file system" in shown.err
