"""Tests lie where their modules are: ``a/b.py`` of the package is tested by ``tests/a/test_b.py``.

Stated exceptions: modules that another file tests (:data:`TESTED_BY`), folders about the whole
(:data:`WHOLE`), and files about several modules, which say their subject in their first line.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "graphgps_pearl"

#: Folders about the whole package: each file is a promise, a page, a command or a device.
WHOLE = {"devices", "docs", "end_to_end", "golden", "helpers", "reliability"}

#: Test file -> the modules that have no file of their own because this one tests them.
TESTED_BY = {
    "config/test_schema.py": "config/data config/key config/model config/posenc config/training "
    "config/unused",
    "config/test_rules.py": "config/encoding_rules",
    "config/test_defaults_that_train.py": "config/resolving",
    "data/test_archives.py": "unpacking",
    "data/test_checks.py": "data/base",
    "data/test_pickles.py": "data/pickled_tensors",
    "data/test_registry.py": "data/graphgym",
    "data/test_molecules.py": "ogb_features",
    "data/datasets/test_csv_file.py": "data/csv_table delimited",
    "data/datasets/test_embedded.py": "data/datasets/nci_ood data/datasets/peptides_3d "
    "data/datasets/wehi_logp",
    "data/datasets/test_node_datasets.py": "data/datasets/geom_gcn data/datasets/gnn_benchmark "
    "data/datasets/planetoid data/datasets/superpixels",
    "data/datasets/test_public_formats.py": "data/datasets/malnet data/datasets/ogb_graphs "
    "data/datasets/ogb_code2 data/datasets/pcqm4m data/datasets/pcqm_contact",
    "encoders/test_base.py": "encoders/equivstable encoders/pearl encoders/rwse",
    "encoders/test_compose.py": "encoders/dummy_edge encoders/table",
    "encoders/test_signnet.py": "encoders/gin encoders/mlp",
    "experiments/test_baseline.py": "data/fingerprints",
    "inference/test_draw.py": "inference/encode_graph",
    "inference/test_large_graph.py": "inference/graph_files",
    "experiments/test_compare.py": "experiments/check",
    "experiments/test_samples.py": "experiments/sample_evaluation report/samples",
    "layers/test_gps_layer.py": "layers/batch_norm layers/local layers/kernels/attention",
    "networks/test_heads.py": "networks/pooling",
    "networks/test_prepare.py": "packing",
    "networks/test_pair_bias.py": "layers/pair_bias layers/kernels/pair_gather",
    "pearl/test_batching.py": "pearl/graphs",
    "pearl/test_interface.py": "pearl/base pearl/bpearl pearl/phi pearl/rpearl",
    "pearl/test_refusals.py": "pearl/checks",
    "pearl/kernels/test_quotient.py": "pearl/rows pearl/kernels/colours pearl/kernels/plan",
    "report/test_comparison.py": "report/table",
    "end_to_end/test_tensorboard.py": "report/pictures",
    "training/test_pretrained.py": "training/wandb_log",
    "reliability/test_memory.py": "memory",
    "reliability/test_processes.py": "training/processes",
    "reliability/test_resume.py": "training/checkpointer training/recorder",
    "test_command.py": "terminal",
    "test_wheel.py": "extras",
    "training/test_edge_tasks.py": "negatives",
}

#: Too small to be tested by themselves.
TRIVIAL = {"errors"}


def modules() -> set[str]:
    files = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py")}
    return {name for name in files if not re.search(r"(^|/)__\w+__$", name)} - TRIVIAL


def namesake(module: str) -> str:
    folder, _, name = module.rpartition("/")
    return f"{folder}/test_{name}.py".lstrip("/")


def elsewhere() -> dict[str, str]:
    """Module -> the file of another name that tests it."""
    return {module: file for file, names in TESTED_BY.items() for module in names.split()}


def test_every_module_has_its_test():
    missing = {m for m in modules() if not (TESTS / namesake(m)).is_file()} - elsewhere().keys()
    assert not missing, (
        f"no tests/{{package}}/test_{{module}}.py for {sorted(missing)}, nor an entry in TESTED_BY"
    )


def test_a_file_about_several_modules_says_its_subject():
    known = {namesake(module) for module in modules()} | TESTED_BY.keys()
    for path in TESTS.rglob("test_*.py"):
        file = path.relative_to(TESTS)
        if file.parts[0] not in WHOLE and file.as_posix() not in known:
            assert ast.get_docstring(ast.parse(path.read_text())), f"tests/{file}: what is it about?"


def test_the_exceptions_are_needed():
    wrong = {m for m in elsewhere() if m not in modules() or (TESTS / namesake(m)).exists()}
    assert not wrong, f"listed in TESTED_BY without need: {sorted(wrong)}"
    gone = {file for file in TESTED_BY if not (TESTS / file).is_file()}
    assert not gone, f"listed, and not there: {sorted(gone)}"
