"""Every mistake ends in one line: the place, the key, its value, what is allowed, and what is near."""

import pytest
from helpers.upstream_configs import ZINC_RWSE

from graphgps_pearl import config
from graphgps_pearl.errors import ConfigError

# Lines put after a good config would repeat its groups, so most cases are words over it.
WORDS = {
    # unknown keys, with the nearest
    "typo": ("gt.n_head 4", "gt.n_head = 4: unknown key", "did you mean gt.n_heads (an integer >= 1)?"),
    "case": ("gt.N_Heads 4", "gt.N_Heads", "did you mean gt.n_heads"),
    "wrong group": ("gt.dim_inner 64", "gt.dim_inner", "did you mean gnn.dim_inner"),
    "group left out": ("batch_size 32", "batch_size", "did you mean train.batch_size"),
    "group misspelled": ("posenc_BPERL.dim_pe 8", "posenc_BPERL.dim_pe", "did you mean posenc_BPEARL.dim_pe"),
    "nested key misspelled": ("posenc_LapPE.eigen.max_freq 8", "did you mean posenc_LapPE.eigen.max_freqs"),
    "other people's name": ("train.lr 0.1", "train.lr", "did you mean optim.base_lr (a number > 0)?"),
    "key below a key": ("gt.layers.x 1", "gt.layers.x", "unknown key"),
    "nothing near": ("bn.qqqqqq 1", "bn.qqqqqq = 1: unknown key; bn has eps, mom"),
    "group, not key": (
        "posenc_LapPE.eigen 8",
        "posenc_LapPE.eigen = 8: is a group",
        "posenc_LapPE.eigen.max_freqs",
    ),
    "group at the top": ("gt 3", "gt = 3: is a group, not a key", "gt.layer_type"),
    "odd number of words": ("gt.layers", "gt.layers", "expected pairs KEY VALUE"),
    "assignment": ("gt.layers=4", "gt.layers=4", "expected pairs KEY VALUE, such as optim.base_lr 0.001"),
    # wrong types
    "text for an integer": ("gt.layers four", "gt.layers = four: expected an integer >= 1"),
    "float for an integer": ("gt.layers 4.0", "gt.layers = 4.0: expected an integer >= 1"),
    "exponent for an integer": ("optim.max_epoch 1e3", "optim.max_epoch = 1e3: expected an integer"),
    "octal for an integer": ("gt.layers 010", "gt.layers = 010: expected an integer"),
    "truth for an integer": ("gt.layers True", "gt.layers = True: expected an integer >= 1"),
    "integer for truth": ("gt.batch_norm 1", "gt.batch_norm = 1: expected true or false"),
    "text for a number": ("optim.base_lr fast", "optim.base_lr = fast: expected a number > 0"),
    "truth for a number": ("optim.base_lr True", "optim.base_lr = True: expected a number > 0"),
    "list for a number": ("optim.base_lr [0.1]", "optim.base_lr = [0.1]: expected a number > 0"),
    "number for a list": (
        "optim.steps 30",
        "optim.steps = 30: expected a list of integers >= 1, such as [1, 2]",
    ),
    "list of other things": ("optim.steps [30,x]", "optim.steps = [30, x]: expected a list of integers"),
    "null": ("optim.base_lr null", "optim.base_lr = null: expected a number > 0"),
    "mapping for a number": ("optim.base_lr {}", "optim.base_lr = {...}: expected a number > 0"),
    # out of range
    "not a number": ("optim.base_lr .nan", "optim.base_lr = .nan: expected a number > 0"),
    "infinite": ("optim.base_lr 1e999", "optim.base_lr = 1e999: expected a number > 0"),
    "zero rate": ("optim.base_lr 0", "optim.base_lr = 0: expected a number > 0"),
    "negative decay": ("optim.weight_decay -1e-5", "optim.weight_decay = -1e-5: expected a number >= 0"),
    "dropout of one": ("gt.dropout 1.0", "gt.dropout = 1.0: expected a number >= 0 and < 1"),
    "no layers": ("gt.layers 0", "gt.layers = 0: expected an integer >= 1"),
    "negative seed": ("seed -1", "seed = -1: expected an integer >= 0 and <= 2147483647"),
    "huge integer": (f"seed {'9' * 50}", "seed = 999", "expected an integer >= 0"),
    "too many parts": ("dataset.split [0.25,0.25,0.25,0.25]", "dataset.split", "with 2 to 3 items"),
    "parts above one": (
        "dataset.split [0.8,0.3]",
        "dataset.split = [0.8, 0.3]",
        "sum to 1, or numbers of graphs",
    ),
    # choices
    "no such task": (
        "dataset.task graphs",
        "dataset.task = graphs: expected one of node, edge, graph, link_pred",
        "did you mean graph?",
    ),
    "no such schedule": ("optim.scheduler cosine_with_warm_up", "did you mean cosine_with_warmup?"),
    "no such optimiser": (
        "optim.optimizer adamx",
        "expected one of adamW, adam, sgd, adagrad",
        "did you mean adam",
    ),
    "no such distribution": (
        "posenc_RPEARL.distribution normal",
        "posenc_RPEARL.distribution = normal: expected one of gaussian, rademacher",
    ),
    "no such operator": ("posenc_BPEARL.gso sym_laplacien", "did you mean sym_laplacian?"),
    "no such pool": (
        "posenc_BPEARL.pool sum+median",
        "posenc_BPEARL.pool = sum+median",
        "mean, sum, var, std, max",
    ),
    "pool twice": ("posenc_BPEARL.pool sum+sum", "posenc_BPEARL.pool = sum+sum", "joined by +"),
    "no such source": (
        "dataset.source web",
        "dataset.source = web: expected one of auto, download, path, embedded",
    ),
    "no such device": ("accelerator tpus", "accelerator = tpus: expected auto, cpu, cuda"),
    "other training loop": (
        "train.mode inference-only",
        "train.mode = inference-only: expected one of custom",
    ),
    "code for times": ("posenc_RWSE.kernel.times_func [1]*3", "expected range(a,b) or range(a,b,c)"),
    "call for times": (
        "posenc_RWSE.kernel.times_func range(1,len('ab'))",
        "expected range(a,b) or range(a,b,c)",
    ),
    "no times": (
        "posenc_RWSE.kernel.times_func range(5,5)",
        "expected a range of 1 to 1000 numbers, all >= 1",
    ),
    "too many times": ("posenc_RWSE.kernel.times_func range(1,999999999)", "expected a range of 1 to 1000"),
    "standing times": ("posenc_RWSE.kernel.times_func range(1,5,0)", "a step c that is not 0"),
    "encoder twice": ("dataset.node_encoder_name Atom+RWSE+RWSE", "each once", "such as Atom+BPEARL"),
    "open composition": ("dataset.node_encoder_name Atom+", "dataset.node_encoder_name = Atom+"),
    "way out of the folder": ("name_tag ../../x", "name_tag = ../../x: expected text without /"),
    "text over lines": ("name_tag a\nb", r"name_tag = a\nb: expected text on one line"),
    # combinations
    "no such local model": (
        "gt.layer_type GINN+Transformer",
        "gt.layer_type = GINN+Transformer",
        "such as GIN+Trans",
        "GENConv, PNA, CustomGatedGCN; global: None, Transformer, Performer",
    ),
    "no such global model": (
        "gt.layer_type GINE+BigBird",
        "gt.layer_type = GINE+BigBird",
        "None, Transformer, Per",
    ),
    "local model alone": ("gt.layer_type GINE", "expected LOCAL+GLOBAL for model.type GPSModel"),
    "nothing in the layers": ("gt.layer_type None+None", "local or a global part that is not None"),
    "widths differ": ("gt.dim_hidden 96", "gt.dim_hidden = 96: must equal gnn.dim_inner, which is 64"),
    "heads do not divide": (
        "gt.n_heads 5",
        "gt.n_heads = 5: must divide gt.dim_hidden, which is 64; 1, 2, 4, 8",
    ),
    "Performer's heads": ("gt.layer_type GINE+Performer gt.n_heads 7", "gt.n_heads = 7: must divide"),
    "GAT's heads": ("gt.layer_type GAT+None gt.n_heads 7", "gt.n_heads = 7: must divide"),
    "two norms": ("gt.layer_norm True", "gt.layer_norm = True: cannot go with gt.batch_norm = True"),
    "too wide": (
        "posenc_RWSE.dim_pe 65",
        "posenc_RWSE.dim_pe = 65: must be at most gnn.dim_inner, which is 64",
    ),
    "too wide together": (
        "dataset.node_encoder_name TypeDictNode+RWSE+BPEARL posenc_BPEARL.dim_pe 40",
        "posenc_RWSE.dim_pe = 28 + posenc_BPEARL.dim_pe = 40 (in sum 68)",
        "at most gnn.dim_inner, which is 64",
    ),
    "switched off": (
        "posenc_RWSE.enable False",
        "posenc_RWSE.enable = False: contradicts dataset.node_encoder_name",
        "leave RWSE out there",
    ),
    "switched on": (
        "posenc_BPEARL.enable True",
        "posenc_BPEARL.enable = True: contradicts dataset.node_encoder_name",
        "such as TypeDictNode+RWSE+BPEARL",
    ),
    "encoder off": ("dataset.node_encoder False", "dataset.node_encoder = False: would ignore"),
    "no network": ("posenc_RWSE.model none", "posenc_RWSE.model = none: expected Linear or MLP"),
    "no steps": (
        "posenc_RWSE.kernel.times_func ",
        "posenc_RWSE.kernel.times = []: expected steps of the walk",
    ),
    "types not counted": (
        "dataset.node_encoder_num_types 0",
        "dataset.node_encoder_num_types = 0: TypeDictNode needs",
    ),
    "edges not encoded": (
        "dataset.edge_encoder False",
        "dataset.edge_encoder = False: GINE in gt.layer_type needs",
    ),
    "edges for custom_gnn": (
        "model.type custom_gnn gnn.layer_type gineconv dataset.edge_encoder False",
        "dataset.edge_encoder = False: gnn.layer_type gineconv needs",
    ),
    "empty phi": (
        "dataset.node_encoder_name TypeDictNode+BPEARL posenc_BPEARL.num_layers 0 posenc_BPEARL.num_taps 0",
        "posenc_BPEARL.num_layers = 0: needs posenc_BPEARL.num_taps >= 1",
    ),
    "a diagonal without taps": (
        "dataset.node_encoder_name TypeDictNode+BPEARL posenc_BPEARL.tap_diagonal True",
        "posenc_BPEARL.tap_diagonal = True: needs num_taps >= 2, which is 1",
    ),
    "pairs for Performer": (
        "dataset.node_encoder_name TypeDictNode+BPEARL posenc_BPEARL.pair_bias shared "
        "gt.layer_type GINE+Performer",
        "posenc_BPEARL.pair_bias = shared: Performer never forms the logits it would be added to",
    ),
    "pairs without attention": (
        "dataset.node_encoder_name TypeDictNode+BPEARL posenc_BPEARL.pair_bias per_layer "
        "gt.layer_type GINE+None",
        "posenc_BPEARL.pair_bias = per_layer: gt.layer_type = GINE+None has no attention",
    ),
    "pairs for message passing": (
        "dataset.node_encoder_name TypeDictNode+BPEARL posenc_BPEARL.pair_bias shared model.type custom_gnn",
        "posenc_BPEARL.pair_bias = shared: model.type custom_gnn has no attention",
    ),
    "pairs on edges nobody reads": (
        "dataset.node_encoder_name TypeDictNode+BPEARL posenc_BPEARL.pair_edges True "
        "gt.layer_type GCN+Transformer",
        "posenc_BPEARL.pair_edges = True: GCN reads no edge features",
    ),
    "pairs on edges that GraphGym's layer does not read": (
        "dataset.node_encoder_name TypeDictNode+BPEARL posenc_BPEARL.pair_edges True "
        "model.type custom_gnn gnn.layer_type sageconv",
        "posenc_BPEARL.pair_edges = True: sageconv reads no edge features",
    ),
    "an encoding for every layer of GraphGym's network": (
        "dataset.node_encoder_name TypeDictNode+RPEARL posenc_RPEARL.inject every_layer model.type gnn",
        "posenc_RPEARL.inject = every_layer: GraphGym's model.type gnn",
    ),
    "pairs for GraphGym's network": (
        "dataset.node_encoder_name TypeDictNode+BPEARL posenc_BPEARL.pair_bias shared model.type gnn",
        "posenc_BPEARL.pair_bias = shared: GraphGym's model.type gnn",
    ),
    "chunks under batch norm": (
        "dataset.node_encoder_name TypeDictNode+RPEARL posenc_RPEARL.chunk_size 10",
        "posenc_RPEARL.chunk_size = 10: posenc_RPEARL.norm = batch would differ",
    ),
    "PEG without edges": (
        "dataset.node_encoder_name TypeDictNode+EquivStableLapPE gt.layer_type GCN+Transformer",
        "gt.layer_type = GCN+Transformer: EquivStableLapPE weighs the edges of GINE or CustomGatedGCN",
    ),
    "PEG in GraphGym's network": (
        "dataset.node_encoder_name TypeDictNode+EquivStableLapPE model.type gnn",
        "EquivStableLapPE weighs the messages of GINE or CustomGatedGCN",
        "model.type gnn has none",
    ),
    "SPE that depends on the basis": (
        "dataset.node_encoder_name TypeDictNode+SPE posenc_SPE.eigen.laplacian_norm rw",
        "posenc_SPE.eigen.laplacian_norm = rw: expected one of none, sym",
    ),
    "SPE of eigenvectors that are not orthonormal": (
        "dataset.node_encoder_name TypeDictNode+SPE posenc_SPE.eigen.eigvec_norm abs-max",
        "posenc_SPE.eigen.eigvec_norm = abs-max: expected one of L2",
    ),
    "LapPE without layers": (
        "dataset.node_encoder_name TypeDictNode+LapPE posenc_LapPE.model Transformer posenc_LapPE.layers 0",
        "posenc_LapPE.layers = 0: expected at least 1",
    ),
    "RWSE's MLP without layers": (
        "posenc_RWSE.model MLP posenc_RWSE.layers 0",
        "posenc_RWSE.layers = 0: expected at least 1",
    ),
    "SignNet's MLP": (
        "dataset.node_encoder_name TypeDictNode+SignNet posenc_SignNet.model MLP "
        "posenc_SignNet.eigen.max_freqs 0",
        "posenc_SignNet.eigen.max_freqs = 0: an MLP needs a fixed number",
    ),
    "LapPE's heads": (
        "dataset.node_encoder_name TypeDictNode+LapPE posenc_LapPE.model Transformer posenc_LapPE.n_heads 3",
        "posenc_LapPE.n_heads = 3: must divide posenc_LapPE.dim_pe, which is 16",
    ),
    "loss of another task": (
        "model.loss_fun cross_entropy",
        "model.loss_fun = cross_entropy: is no loss for",
        "expected l1, mse",
    ),
    "task of another loss": (
        "dataset.task_type classification metric_best auto",
        "model.loss_fun = l1: is no loss",
        "expected cross_entropy",
    ),
    "metric of another task": (
        "metric_best auc",
        "metric_best = auc: is no metric for",
        "expected mae, rmse",
    ),
    "worst epoch": ("metric_agg argmax", "metric_agg = argmax: would choose the worst", "expected argmin"),
    "worst epoch by a rank": (
        "dataset.task_type classification_binary model.loss_fun cross_entropy metric_best mrr",
        "metric_agg = argmin: would choose the worst",
    ),
    "worst epoch by r2": ("metric_best r2", "metric_agg = argmin: would choose the worst", "expected argmax"),
    "head of another task": (
        "dataset.task node",
        "dataset.task = node: gnn.head = san_graph predicts for graphs",
    ),
    "rate cannot fall": (
        "optim.scheduler reduce_on_plateau optim.min_lr 0.1",
        "optim.min_lr = 0.1: must be at most",
    ),
    "steps fall": ("optim.scheduler step optim.steps [9,3]", "optim.steps = [9, 3]: expected rising"),
    "nothing to freeze": ("pretrained.freeze_main True", "pretrained.freeze_main = True: needs"),
    "no path": ("dataset.source path", "dataset.source = path: needs", "dataset.path"),
    "path ignored": ("dataset.source download dataset.path x.csv", "dataset.path = x.csv: would be ignored"),
    "csv without file": ("dataset.format csv", "dataset.path = '': expected the CSV file"),
    "csv's SMILES as target": (
        "dataset.format csv dataset.path x.csv dataset.target_columns [smiles]",
        "dataset.target_columns = ['smiles']: has the column of SMILES among them",
    ),
    "csv's split as target": (
        "dataset.format csv dataset.path x.csv dataset.target_columns [y] dataset.split_column y",
        "dataset.split_column = y: is the column of SMILES or of a target",
    ),
}

FILES = {
    "unknown key": ("gt:\n  layers: 3\n  n_head: 4\n", "bad.yaml:3: gt.n_head = 4: unknown key; did you"),
    "unknown group": ("posenc_BPERL:\n  dim_pe: 4\n", "bad.yaml:1: posenc_BPERL", "the group posenc_BPEARL?"),
    "wrong type": ("train:\n  batch_size: many\n", "bad.yaml:2: train.batch_size = many: expected an int"),
    "group with a value": ("gt: 5\n", "bad.yaml:1: gt = 5: is a group, not a key; it has gt.layer_type"),
    "group with a list": ("gt: [layers]\n", "bad.yaml:1: gt = [layers]: is a group"),
    "key with a group": ("seed:\n  value: 3\n", "bad.yaml:1: seed = {...}: expected an integer"),
    "dotted key": ("gt.layers: 3\n", "bad.yaml:1: gt.layers: write a key inside its group"),
    "duplicate key": ("seed: 1\nround: 2\nseed: 3\n", "bad.yaml:3: 'seed' is set a second time", "line 1"),
    "duplicate group": ("gt: {layers: 1}\ngt: {layers: 2}\n", "bad.yaml:2: 'gt' is set a second time"),
    "truth for text": ("name_tag: no\n", "bad.yaml:1: name_tag = no: expected text; put quotes"),
    "nothing for a number": ("seed:\n", "bad.yaml:1: seed = '': expected an integer"),
    "empty": ("", "bad.yaml: is empty"),
    "comments only": ("# nothing\n", "bad.yaml: is empty"),
    "text": ("train GPS please\n", "bad.yaml: is not a config"),
    "list": ("- seed: 1\n", "bad.yaml: is not a config"),
    "two documents": ("seed: 1\n---\nseed: 2\n", "bad.yaml:2: has a second YAML document"),
    "broken YAML": ("gt: {layers: 1\n", "bad.yaml: is not valid YAML", "line"),
    "tab": ("gt:\n\tlayers: 1\n", "bad.yaml: is not valid YAML", "line 2"),
    "list as a key": ("? [a, b]\n: 1\n", "bad.yaml:1: has a list or group where a key is expected"),
    "enable without a name": (
        "dataset: {node_encoder: True}\nposenc_RWSE: {enable: True}\n",
        "bad.yaml: posenc_RWSE.enable = True: contradicts dataset.node_encoder_name = Atom; name it there",
        "such as Atom+RWSE",
    ),
    "name without an encoder": (
        "dataset: {node_encoder_name: Atom+BPEARL}\n",
        "bad.yaml: dataset.node_encoder = False: would ignore dataset.node_encoder_name = Atom+BPEARL",
        "set it True",
    ),
}  # fmt: skip


def the_one_line(error: ConfigError) -> str:
    line = str(error)
    assert line.isprintable() and len(line) < 700
    return line


@pytest.mark.parametrize("words, fragments", [(case[0], case[1:]) for case in WORDS.values()], ids=WORDS)
def test_bad_words(words: str, fragments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse(ZINC_RWSE, words.split(" "), name="zinc.yaml")
    line = the_one_line(caught.value)
    assert line.startswith(("command line: ", "zinc.yaml: "))
    assert all(fragment in line for fragment in fragments), line


@pytest.mark.parametrize("text, fragments", [(case[0], case[1:]) for case in FILES.values()], ids=FILES)
def test_bad_files(text: str, fragments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse(text, name="bad.yaml")
    line = the_one_line(caught.value)
    assert all(fragment in line for fragment in fragments), line


def test_missing_file_names_the_nearest(tmp_path) -> None:
    (tmp_path / "zinc-bpearl.yaml").write_text("seed: 1\n")
    with pytest.raises(
        ConfigError, match=r"zinc-bperl\.yaml: no such file; did you mean .*zinc-bpearl\.yaml\?"
    ):
        config.load(tmp_path / "zinc-bperl.yaml")


def test_folder_and_odd_paths(tmp_path) -> None:
    for path in (tmp_path, tmp_path / "nowhere" / "x.yaml", tmp_path / "a\nb.yaml", "nul\0.yaml"):
        with pytest.raises(ConfigError) as caught:
            config.load(path)
        the_one_line(caught.value)


def test_binary_file(tmp_path) -> None:
    path = tmp_path / "model.yaml"
    path.write_bytes(b"seed: \xff\xfe")
    with pytest.raises(ConfigError, match=r"model\.yaml: is not UTF-8 text \(byte 6\)"):
        config.load(path)
