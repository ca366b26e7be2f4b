"""Data flows one way: config -> data -> encoders -> networks -> training -> report -> experiments.

Nothing reaches back."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "graphgps_pearl"

#: Modules at package level that any package may import.
SHARED = {
    "errors",
    "escaping",
    "files",
    "memory",
    "negatives",
    "processes",
    "ogb_features",
    "switches",
    "compiled",
    "terminal",
    "vocabulary",
    "delimited",
    "unpacking",
    "__version__",
}
#: What each room may import of the package, besides itself and what is shared.
MAY_IMPORT = {
    "config": set(),
    "pearl": set(),
    "layers": {"contracts", "pearl"},
    "data": {"config"},
    "encoders": {"config", "contracts", "layers", "pearl"},
    "networks": {"config", "contracts", "encoders", "layers"},
    "relational": {"pearl"},
    "runs": {"config"},
    "training": {"config", "data", "encoders", "networks", "pearl", "runs"},
    "experiments": {
        *("command", "registry"),
        *("config", "data", "encoders", "networks", "training", "runs", "report", "inference"),
    },
    "report": {"command", "config", "data", "encoders", "inference", "runs", "training"},
    "inference": {"command", "config", "data", "encoders", "networks", "pearl", "runs", "training"},
}
#: Libraries that have no business in a room.
MUST_NOT_IMPORT = {
    "config": {"torch", "torch_geometric", "lightning"},
    "pearl": {"yacs", "torch_geometric.graphgym", "lightning"},
    "layers": {"yacs", "torch_geometric.graphgym", "lightning"},
    "runs": {"lightning"},
}


def imports(file: Path) -> list[tuple[str, bool]]:
    """(dotted name, whether it is at the top level) of everything a file imports."""
    tree = ast.parse(file.read_text())
    found = []
    for node in ast.walk(tree):
        top = node in tree.body
        if isinstance(node, ast.Import):
            found += [(alias.name, top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(f"{node.module}.{alias.name}", top) for alias in node.names]
    return found


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_only_what_comes_before_them(room):
    allowed = MAY_IMPORT[room] | SHARED | {room}
    for file in (PACKAGE / room).rglob("*.py"):
        for name, _ in imports(file):
            if name.startswith("graphgps_pearl."):
                assert name.split(".")[1] in allowed, f"{file.relative_to(PACKAGE)} imports {name}"


@pytest.mark.parametrize("room", MUST_NOT_IMPORT)
def test_rooms_stay_clear_of_libraries(room):
    for file in (PACKAGE / room).rglob("*.py"):
        for name, top in imports(file):
            for library in MUST_NOT_IMPORT[room]:
                # config.activate imports PyG in its body, when it is asked to hand the config over.
                if name == library or name.startswith(f"{library}."):
                    assert room == "config" and not top, f"{file.relative_to(PACKAGE)} imports {name}"


def test_nothing_that_windows_or_macos_lack_is_imported_with_a_module():
    for file in PACKAGE.rglob("*.py"):
        for name, top in imports(file):
            missing = name in ("fcntl", "resource", "pwd", "grp", "termios")
            assert not (missing and top), f"{file.relative_to(PACKAGE)} imports {name}"


def test_main_is_a_few_lines():
    assert len((PACKAGE.parent / "main.py").read_text().splitlines()) < 15


def test_the_vocabulary_imports_nothing():
    assert imports(PACKAGE / "vocabulary.py") == []


def test_the_figure_of_the_packages_is_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(PACKAGE.parent / "scripts"))
    import draw_packages

    found = draw_packages.imports()
    assert draw_packages.FIGURE.read_text() == draw_packages.draw(found), (
        "run: python scripts/draw_packages.py"
    )


def test_files_that_the_walk_of_a_batch_names_exist():
    text = (PACKAGE.parent / "docs" / "development.md").read_text()
    walk = text[text.index("## One batch") : text.index("## Tests")]
    names = re.findall(r"`([a-z_/]+\.py)`", walk)
    missing = [n for n in names if not (PACKAGE / n).exists() and not (PACKAGE.parent / n).exists()]
    assert len(names) > 20 and not missing
