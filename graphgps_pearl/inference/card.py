"""The model card: what a person has to know before believing a prediction."""

from __future__ import annotations

from yacs.config import CfgNode

from graphgps_pearl import config
from graphgps_pearl.escaping import code, markdown
from graphgps_pearl.inference.facts import ModelFacts
from graphgps_pearl.inference.featurise import reads_smiles
from graphgps_pearl.training.metrics import metric_names

#: What is known of embedded datasets, and what a model of them cannot do.
_DATA = {
    "wehi-logp": "10,000 drug-like molecules that come with RDKit (`Data/Pains/test_data/wehi_mols.csv`), "
    "split 8,000 / 1,000 / 1,000 at random, always the same way.",
    "ZINC-subset": "ZINC-12k: 12,000 molecules of up to 37 atoms, 28 types of atoms and Kekulé bonds, in the "
    "public split 10,000 / 1,000 / 1,000.",
    "Peptides-func": "LRGB Peptides-func: 15,535 peptides of up to 444 heavy atoms with ten functions as a "
    "database (SATPdb) lists them, in the public split 10,873 / 2,331 / 2,331.",
    "lbap_core_ec50_assay": "DrugOOD LBAP-core EC50 by assay: 12,661 molecules from ChEMBL 29, active or "
    "not, in the public split. The iid splits are of the 47 assays that training has, the ood splits of 147 "
    "others.",
}
_LIMITS = {
    "wehi-logp": """\
- The target is penalised logP (logP, synthetic accessibility and rings above six, normalised as for ZINC),
  computed by RDKit, not measured. Where exact values are wanted, RDKit has them; the model is an example.
- The split is random, not by scaffold: errors on new chemistry are larger than the test error says.
- Molecules unlike the training data (other elements, macrocycles, salts of several parts, hundreds of atoms)
  get a number all the same, and nothing warns that it means little.
- It is no benchmark: do not compare with published errors on ZINC.
- None of the training molecules has stereo marks, so what chirality adds to a prediction is not learned. The
  same molecule has the same prediction in any spelling all the same: it is made canonical first.
""",
    "ZINC-subset": """\
- The target is penalised logP, computed by RDKit, not measured. The model is a benchmark's: it shows what an
  encoding is worth, and RDKit has exact values.
- It reads ZINC's graphs (types of atoms as numbers 0 to 27, of bonds as 1 to 3), not SMILES.
- Graphs unlike the training data get a number all the same, and nothing warns that it means little.
- The error of training is the mean over the steps of its epoch, with dropout; that of the other splits is the
  trained model's.
""",
    "Peptides-func": """\
- A probability is that of a label in the database, where functions that were never tested count as absent.
  Use it to rank peptides, not to decide on one.
- The split is random, not by similarity of sequences: expect less on new families of peptides.
- Molecules that are no peptides get ten numbers all the same, and nothing warns that they mean little.
- The score of training is the mean over the steps of its epoch, with dropout; that of the other splits is the
  trained model's.
""",
    "lbap_core_ec50_assay": """\
- "Active" is a threshold on the EC50 of some assay. The model is not told which assay, and three molecules in
  four of its training were active. Use it to rank molecules, not to decide on one.
- The ood scores are what to expect of a new assay. They depend on the epoch and the seed.
- The score of training is the mean over the steps of its epoch, with dropout; that of the other splits is the
  trained model's.
""",
}
_ANY_LIMITS = """\
- Molecules unlike the training data get a number all the same, and nothing warns that it means little.
- The errors above hold for the test split as it was drawn; new chemistry may be further away.
- The error of training is the mean over the steps of its epoch, with dropout; that of the other splits is the
  trained model's.
"""


def write_card(cfg: CfgNode, facts: ModelFacts, notes: str = "") -> str:
    """The card as Markdown; ``notes`` are further limits in the author's words."""
    units = facts.target_units or ("",) * len(facts.target_names)
    targets = ", ".join(
        code(name) + (f" \\[{markdown(unit)}]" if unit else "")
        for name, unit in zip(facts.target_names, units, strict=True)
    )
    source = code(f"dataset.format: {cfg.dataset.format}")
    total = sum(facts.parameters.values())
    parts = ", ".join(f"{markdown(part)} {count:,}" for part, count in facts.parameters.items())
    return f"""\
# {markdown(facts.name)}

{markdown(cfg.model.type)} with {code(cfg.dataset.node_encoder_name)}, which predicts \
{targets or "classes"} ({facts.task_type}) {_input(cfg, facts)}

FOLDER is this folder (a shipped model also goes by its name).

## Data

{_DATA.get(facts.dataset, f"{markdown(facts.dataset)} ({source}).")}
{_data_notes(cfg, facts)}
## Model and schedule

{total:,} parameters ({parts}).
{_schedule(cfg, facts)}
`config.yaml` has every setting; `model.json` the versions of the libraries.

## Errors

{_metrics(facts, cfg)}

## Limits

{_LIMITS.get(facts.dataset, _ANY_LIMITS)}{notes.strip() + chr(10) if notes.strip() else ""}"""


def _input(cfg: CfgNode, facts: ModelFacts) -> str:
    """What it predicts from, and how to ask it."""
    if reads_smiles(cfg, facts):
        return "from SMILES.\n\n    graphgps-pearl predict FOLDER molecules.smi -o predictions.csv"
    what = "" if facts.task == "graph" else f"for each {facts.task} "
    return f"""{what}from graphs as the data below has them.

    import graphgps_pearl

    graphgps_pearl.load("FOLDER").predict_graphs([data, ...])  # PyG's Data: x, edge_index, edge_attr"""


def _data_notes(cfg: CfgNode, facts: ModelFacts) -> str:
    """What was done with the data: a line, or nothing."""
    notes = []
    if cfg.dataset.subset:
        notes.append(f"About {cfg.dataset.subset:,} of its molecules were used.")
    if facts.task_type == "regression" and facts.target_mean is None:
        notes.append("The targets are taken as the data has them.")  # LRGB's come standardised
    elif facts.task_type == "regression":
        notes.append("The targets were standardised; predictions are given in original units.")
    return " ".join(notes) + "\n" if notes else ""


def _schedule(cfg: CfgNode, facts: ModelFacts) -> str:
    optim = cfg.optim
    text = (
        f"{optim.max_epoch} epochs of {optim.optimizer} (learning rate {optim.base_lr:g}, weight decay "
        f"{optim.weight_decay:g}, schedule `{optim.scheduler}`), batches of {cfg.train.batch_size}, loss "
        f"`{cfg.model.loss_fun}`, seed {cfg.seed}. Encodings: {', '.join(config.encodings(cfg)) or 'none'}."
    )
    if cfg.pretrained.dir:
        head = ", with a new head" if cfg.pretrained.reset_prediction_head else ""
        text += f"\nTraining began with the weights of {code(cfg.pretrained.dir)}{head}."
    decay, graphs = cfg.train.ema_decay, f"re-estimated from {cfg.train.bn_reestimate:,} training graphs"
    if decay:
        text += f"\nThe weights are averages over the steps (`train.ema_decay {decay:g}`)"
        text += f", the batch norms {graphs}." if cfg.train.bn_reestimate else "."
    elif cfg.train.bn_reestimate:
        text += f"\nThe statistics of the batch norms are {graphs}."
    if "epoch" in facts.metrics:
        text += f"\nThe weights are those of epoch {int(facts.metrics['epoch']) + 1}"
        text += f", {facts.chosen}." if facts.chosen else "."
    elif facts.chosen:
        text += f"\nThe weights are {facts.chosen}."
    return text


def _metrics(facts: ModelFacts, cfg: CfgNode) -> str:
    names = [
        name
        for name in (*metric_names(facts.task_type, facts.task), *cfg.custom_metrics)
        if any(c.endswith(f"_{name}") for c in facts.metrics)
    ]
    splits = [c.removesuffix("_loss") for c in facts.metrics if c.endswith("_loss")]
    if not names:
        return "None were recorded."
    lines = [f"| split | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for split in splits:
        cells = [f"{facts.metrics.get(f'{split}_{name}', float('nan')):.4f}" for name in names]
        lines.append(f"| {markdown(split)} | {' | '.join(cells)} |")
    if facts.target_mean is not None and not cfg.dataset.standardise:
        lines.append("\nIn units of the targets' standard deviations.")
    return "\n".join(lines)
