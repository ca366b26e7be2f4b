"""Names that a user may write, each list once; config, pearl, layers, networks and training import them.

This module imports nothing, so the config can offer the names without loading torch. What a name does is in
the module that implements it; a test compares the two.
"""

# PEARL

OPERATORS = ("adjacency", "laplacian", "sym_adjacency", "sym_laplacian", "random_walk")
DISTRIBUTIONS = ("gaussian", "rademacher", "two_point", "sobol")
NORMS = ("batch", "layer", "graph", "none")  # graph: per graph in the first layer of Φ
SKIPS = ("none", "residual", "sum")
POOLS = ("mean", "sum", "var", "std", "max")
PAIR_POOLS = (*POOLS, "self")  # self: the diagonal pair (v, v), which only B-PEARL has
PEARL_ACTIVATIONS = (
    *("relu", "gelu", "silu", "elu", "leaky_relu", "tanh", "sigmoid", "softplus"),
    *("square", "cube", "identity"),
)
PHI_ENDS = ("activation", "linear")  # how GIN layers of Φ end; linear: as in the authors' code
PAIR_BIASES = ("none", "shared", "per_layer", "updated")

# other encodings

INJECTIONS = ("input", "every_layer")
LAPLACIAN_NORMS = ("none", "sym", "rw")
EIGENVECTOR_NORMS = ("L1", "L2", "abs-max", "wavelength", "wavelength-asin", "wavelength-soft")
SPECTRUM_ENDS = ("smallest", "largest")
RAW_NORMS = ("none", "BatchNorm")
IDENTIFIER_DISTRIBUTIONS = ("gaussian", "rademacher", "two_point")  # of RandomID
ENCODING_MODELS = {
    "LapPE": ("DeepSet", "Transformer"),
    "RWSE": ("Linear", "MLP"),
    "SignNet": ("DeepSet", "MLP"),
    "SPE": ("MLP", "DeepSet"),
    "GSN": ("Linear", "MLP"),
}

AST_NODE, AST_EDGE = (98, 10_030, 21), (2, 2)  # values of the columns of ogbg-code2

# layers and networks

LOCAL_LAYERS = ("None", "GCN", "GIN", "GINE", "GAT", "GENConv", "PNA", "CustomGatedGCN")
GLOBAL_LAYERS = ("None", "Transformer", "Performer")
BIASED = "BiasedTransformer"  # GraphGPS's name of Transformer with the bias of GraphormerBias
NEED_EDGES = (
    "GINE",
    "CustomGatedGCN",
)  # cannot run without edge features; also what EquivStableLapPE can weigh
READ_NO_EDGES = ("None", "GCN", "GIN")
GRAPHGYM_READS_NO_EDGES = ("generalconv", "sageconv", "linear", "mlp")  # of its own gnn.layer_type
GRAPHGYM_READS_EDGE_DIM = ("generaledgeconv", "generalsampleedgeconv")
MESSAGE_PASSING = {  # gnn.layer_type of GraphGym and the local layer of GPS that it is
    "gcnconv": "GCN",
    "ginconv": "GIN",
    "gineconv": "GINE",
    "gatconv": "GAT",
    "genconv": "GENConv",
    "pna": "PNA",
    "gatedgcnconv": "CustomGatedGCN",
}
ATTENTION_GATES = ("none", "head", "channel")
LAYER_NORMS = ("batch", "layer", "none")
NETWORKS = ("GPSModel", "custom_gnn", "SANTransformer", "Graphormer")
STAGES = ("stack", "skipsum")
GRAPH_HEADS = ("graph", "san_graph", "mlp_graph", "graphormer_graph", "ogb_code_graph")
NODE_HEADS = ("node", "inductive_node")  # one head; GraphGPS names it by the kind of split
EDGE_HEADS = ("edge", "inductive_edge")
EDGE_DECODINGS = ("dot", "cosine_similarity")
GRAPH_POOLINGS = ("add", "mean", "max", "graph_token")
ACTIVATIONS = (
    *("relu", "selu", "prelu", "elu", "gelu", "swish"),
    *("lrelu_01", "lrelu_025", "lrelu_03", "lrelu_05"),
)

# training

TASKS = ("node", "edge", "graph", "link_pred")
TASK_TYPES = (
    *("classification", "classification_binary", "classification_multilabel", "regression"),
    "subtoken_prediction",  # the words of a name, ogbg-code2
)
NAME_LENGTH, NAME_WORDS = 5, 5002  # words predicted; 5,000 frequent ones, any other, the end
REGRESSION_LOSSES = ("l1", "mse", "smoothl1")
CLASSIFICATION_LOSSES = ("cross_entropy", "weighted_cross_entropy")
METRICS = {  # by dataset.task_type; the first is what metric_best: auto means
    "regression": ("mae", "rmse", "r2", "spearmanr"),
    "classification": ("accuracy", "f1"),
    "classification_binary": ("auc", "ap", "accuracy", "f1"),
    "classification_multilabel": ("ap", "auc", "accuracy", "f1"),
    "subtoken_prediction": ("f1", "precision", "recall"),
}
EXTRA_METRICS = {  # by what is predicted for and dataset.task_type
    ("node", "classification"): ("accuracy-SBM",),
    ("node", "classification_binary"): ("accuracy-SBM",),
    ("edge", "classification_binary"): ("mrr", "hits@1", "hits@3", "hits@10"),
}
SMALLER_IS_BETTER = frozenset({"loss", "mae", "rmse"})
OPTIMIZERS = ("adamW", "adam", "sgd", "adagrad", "muon")
SCHEDULERS = (
    *("none", "step", "cos", "cosine_with_warmup", "linear_with_warmup", "polynomial_with_warmup"),
    "reduce_on_plateau",
)
SAMPLERS = ("full_batch", "size_bucket")
PRECISIONS = ("32", "64", "bf16-mixed", "16-mixed")
