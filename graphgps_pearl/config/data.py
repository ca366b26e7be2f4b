"""Keys of the data: which dataset, how it is split and featurised, and which encoders read it."""

from __future__ import annotations

from graphgps_pearl.config.key import Groups, Key
from graphgps_pearl.vocabulary import TASK_TYPES, TASKS


def _composition(name: str) -> str | None:
    parts = name.split("+")
    if not all(parts) or len(set(parts)) < len(parts) or name != "".join(name.split()):
        return "expected encoder names joined by +, each once and without spaces, such as Atom+BPEARL"
    return None


def _parts(parts: list[float]) -> str | None:
    if abs(sum(parts) - 1) < 1e-6 or (sum(parts) > 1 and all(part == int(part) for part in parts)):
        return None
    return "expected parts of the whole that sum to 1, or numbers of graphs"


_DATASET = {
    "format": Key(
        "PyG", "Kind of dataset, spelled as GraphGPS does (PyG-ZINC, OGB, ...), or embedded, or csv."
    ),
    "name": Key("none", "Name of the dataset within its format, such as subset or peptides-structural."),
    "dir": Key("./datasets", "Folder where downloaded and prepared data is kept."),
    "source": Key(
        "auto",
        "auto: path if given, else what is in dir, else a download; path: never the network.",
        choices=("auto", "download", "path", "embedded"),
    ),
    "path": Key("", "File or folder of raw data that you supply."),
    "slic_compactness": Key(10, "Superpixels: compactness of the segmentation, 10 or 30.", min=10, max=30),
    "subset": Key(0, "Use about n graphs, the same share of every split; 0 = all.", min=0),
    "check_totals": Key(
        True, "Compare the dataset's totals with the published ones; turn off for parts of a dataset."
    ),
    "skip_bad_rows": Key(False, "Skip and list rows that cannot be used instead of stopping at them."),
    "features": Key(
        "auto",
        "Features made from SMILES: OGB's, AttentiveFP's 39 + 10, or what the dataset is known with (auto).",
        choices=("auto", "ogb", "attentivefp"),
    ),
    "smiles_column": Key("smiles", "csv: column with the SMILES."),
    "target_columns": Key([], "csv: columns with the targets; empty = every other column.", type=list[str]),
    "split_column": Key("", "csv: column that says train, val or test, for split_mode standard."),
    "task": Key("node", "What is predicted for.", choices=TASKS),
    "task_type": Key(
        "classification",
        "Kind of target.",
        choices=TASK_TYPES,
        aliases={"classification_multi": "classification"},  # GraphGym's name for exclusive classes
    ),
    "standardise": Key(
        False,
        "Regression: standardise the targets by the training split; metrics and predictions stay in their "
        "unit. Left out, on for format csv.",
    ),
    "split_mode": Key("standard", "How the data is split: standard, random, scaffold, size, or cv-..."),
    "split": Key(
        [0.8, 0.1, 0.1],
        "Parts (or numbers of graphs) for training, validation and test when the split is made here.",
        type=list[float],
        min=0,
        length=(2, 3),
        check=_parts,
    ),
    "split_index": Key(0, "Which of several splits or folds to use.", min=0),
    "select_split": Key(
        "", "Split that chooses the best epoch; empty = the dataset's own choice (val, ood_val)."
    ),
    "subgraph_hops": Key(
        0,
        "Node tasks on one graph: train on each node's neighbourhood of so many hops; 0 = the whole graph.",
        min=0,
    ),
    "subgraph_parts": Key(
        0,
        "Node tasks on one graph: train on so many parts of it, each with its subgraph_hops around it; "
        "0 = on each node's own.",
        min=0,
    ),
    "subgraph_neighbors": Key(
        0, "Most neighbours that are followed from a node at each hop, drawn at random; 0 = all.", min=0
    ),
    "resample_negative": Key(
        False, "Edge tasks: draw other pairs without an edge in every training step, two for each edge."
    ),
    "node_encoder": Key(False, "Encode the node features."),
    "node_encoder_name": Key(
        "Atom", "A data encoder and any number of encodings, such as Atom+BPEARL.", check=_composition
    ),
    "node_encoder_num_types": Key(0, "Number of node types for TypeDictNode.", min=0),
    "node_encoder_bn": Key(True, "Batch norm after the node encoder."),
    "edge_encoder": Key(False, "Encode the edge features."),
    "edge_encoder_name": Key("Bond", "Edge encoder, such as Bond or TypeDictEdge.", check=_composition),
    "edge_encoder_num_types": Key(0, "Number of edge types for TypeDictEdge.", min=0),
    "edge_encoder_dim_in": Key(0, "Columns of the edge features for LinearEdge.", min=0),
    "edge_encoder_bn": Key(True, "Batch norm after the edge encoder."),
    "transductive": Key(True, "For node tasks of GraphGym; the dataset decides it, whatever it says."),
}

GROUPS: Groups = {
    "dataset": ("Which data, how it is split and featurised, and which encoders read it.", _DATASET)
}
