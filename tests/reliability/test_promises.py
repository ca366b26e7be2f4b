"""docs/reliability.md and docs/scaling.md name tests that exist, and every test here is named."""

import ast
import functools
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: What guards a test rather than a promise.
UNNAMED = {"test_the_payload_would_run_if_it_were_let_in", "test_devices_without_processes_are_refused"}
UNNAMED |= {"test_out_of_memory_is_told_from_other_errors"}
UNNAMED |= {"test_growth_is_told_from_the_first_rounds_and_from_noise"}


@functools.cache
def read_tests(file: Path) -> dict[str, bool]:
    """The tests of a file, and whether they are slow."""
    functions = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {
        f.name: any("mark.slow" in ast.unparse(d) and "param" not in ast.unparse(d) for d in f.decorator_list)
        for f in functions
        if f.name.startswith("test_")
    }


def named(document: str) -> list[tuple[Path, str, bool]]:
    """(file, test, whether it is called slow) of every test that a document names."""
    text = (ROOT / "docs" / document).read_text()
    found = re.findall(r"`([\w/]+\.py)::(\w+)`( \(slow\))?", text)
    return [(ROOT / f if "/" in f else HERE / f, name, bool(slow)) for f, name, slow in found]


def test_every_test_that_the_documents_name_exists():
    promises = named("reliability.md")
    assert len(promises) > 40
    for file, name, slow in [*promises, *named("scaling.md")]:
        assert name in read_tests(file), f"{file.name} has no {name}"
        assert read_tests(file)[name] == slow, f"{name}: slow or not?"


def test_every_test_here_is_named():
    known = {name for document in ("reliability.md", "scaling.md") for _, name, _ in named(document)}
    for file in HERE.glob("test_*.py"):
        if file != Path(__file__):
            missing = read_tests(file).keys() - known - UNNAMED
            assert not missing, f"docs/reliability.md does not name {missing}"
