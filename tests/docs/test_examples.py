"""The example scripts, at a size that takes seconds."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_gine_with_bpearl_learns():
    errors = module("gine_bpearl").main(count=96, epochs=4)
    assert errors[-1] < 0.8 * errors[0]


def test_gpsconv_with_bpearl_tells_csl_apart():
    assert module("gpsconv_pearl").main() == pytest.approx({"without": 0.1, "B-PEARL": 1.0})


def test_every_example_is_tested():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {"gine_bpearl", "gpsconv_pearl"}
