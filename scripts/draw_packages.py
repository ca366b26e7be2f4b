"""Draw which package of graphgps_pearl imports which, read from the source: docs/packages.svg.

    python scripts/draw_packages.py

A package stands above everything that it imports. An arrow that follows from others is left out.
"""

from __future__ import annotations

import ast
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "graphgps_pearl"
FIGURE = REPOSITORY / "docs" / "packages.svg"
WIDTH, HEIGHT, GAP_X, GAP_Y = 104, 30, 22, 42

Imports = dict[str, set[str]]


def imports() -> Imports:
    """For every package the packages that it imports."""
    packages = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    found: Imports = {}
    for package in sorted(packages):
        names: set[str] = set()
        for file in (PACKAGE / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    names |= {f"{node.module}.{alias.name}" for alias in node.names}
                elif isinstance(node, ast.Import):
                    names |= {alias.name for alias in node.names}
        parts = [name.split(".") for name in names if name.startswith("graphgps_pearl.")]
        found[package] = {part[1] for part in parts} & packages - {package}
    return found


def reduced(found: Imports) -> Imports:
    """Without the arrows that follow from others."""

    def reached(package: str) -> set[str]:
        return found[package] | {name for other in found[package] for name in reached(other)}

    return {
        package: {name for name in own if not any(name in reached(other) for other in own)}
        for package, own in found.items()
    }


def levels(found: Imports) -> list[list[str]]:
    """The packages by the length of the longest chain of imports below them."""

    def level(package: str) -> int:
        return 1 + max((level(other) for other in found[package]), default=-1)

    by_level: dict[int, list[str]] = {}
    for package in found:
        by_level.setdefault(level(package), []).append(package)
    return [by_level[number] for number in sorted(by_level)]


def draw(found: Imports) -> str:
    """The figure as SVG."""
    rows = levels(found)
    widest = max(map(len, rows)) * (WIDTH + GAP_X)
    bottom = len(rows) * (HEIGHT + GAP_Y)
    position = {}
    for number, row in enumerate(rows):
        left = (widest - len(row) * (WIDTH + GAP_X)) / 2 + GAP_X / 2
        for column, package in enumerate(row):
            position[package] = left + column * (WIDTH + GAP_X), bottom - (number + 1) * (HEIGHT + GAP_Y) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {widest} {bottom}" font-family="sans-serif">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#667"/></marker></defs>',
        f'<rect width="{widest}" height="{bottom}" fill="white"/>',
    ]
    for package, own in reduced(found).items():
        for other in sorted(own):
            (x1, y1), (x2, y2) = position[package], position[other]
            lines.append(
                f'<line x1="{x1 + WIDTH / 2:g}" y1="{y1 + HEIGHT:g}" x2="{x2 + WIDTH / 2:g}" y2="{y2 - 2:g}" '
                'stroke="#667" marker-end="url(#tip)"/>'
            )
    for package, (x, y) in position.items():
        lines.append(
            f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5" '
            'fill="#eef3fa" stroke="#4477aa"/>'
            f'<text x="{x + WIDTH / 2:g}" y="{y + 20:g}" text-anchor="middle" font-size="14">{package}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    FIGURE.write_text(draw(imports()))
