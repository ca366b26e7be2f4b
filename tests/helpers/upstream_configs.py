"""The settings of GraphGPS's published ZINC and Peptides-struct runs, as its users write them."""

ZINC_RWSE = """\
out_dir: results
metric_best: mae
metric_agg: argmin
wandb: {use: True, project: ZINC}
dataset:
  format: PyG-ZINC
  name: subset
  task: graph
  task_type: regression
  transductive: False
  node_encoder: True
  node_encoder_name: TypeDictNode+RWSE
  node_encoder_num_types: 28
  node_encoder_bn: False
  edge_encoder: True
  edge_encoder_name: TypeDictEdge
  edge_encoder_num_types: 4
  edge_encoder_bn: False
posenc_RWSE:
  enable: True
  kernel:
    times_func: range(1,21)
  model: Linear
  dim_pe: 28
  raw_norm_type: BatchNorm
train: {mode: custom, batch_size: 32, eval_period: 1, ckpt_period: 100}
model: {type: GPSModel, loss_fun: l1, edge_decoding: dot, graph_pooling: add}
gt:
  layer_type: GINE+Transformer
  layers: 10
  n_heads: 4
  dim_hidden: 64
  dropout: 0.0
  attn_dropout: 0.5
  layer_norm: False
  batch_norm: True
gnn:
  head: san_graph
  layers_pre_mp: 0
  layers_post_mp: 3
  dim_inner: 64
  batchnorm: True
  act: relu
  dropout: 0.0
  agg: mean
  normalize_adj: False
optim:
  clip_grad_norm: True
  optimizer: adamW
  weight_decay: 1e-5
  base_lr: 0.001
  max_epoch: 2000
  scheduler: cosine_with_warmup
  num_warmup_epochs: 50
"""

PEPTIDES_STRUCT = """\
out_dir: results
metric_best: mae
metric_agg: argmin
wandb: {use: True, project: peptides-struct}
dataset:
  format: OGB
  name: peptides-structural
  task: graph
  task_type: regression
  transductive: False
  node_encoder: True
  node_encoder_name: Atom+LapPE
  node_encoder_bn: False
  edge_encoder: True
  edge_encoder_name: Bond
  edge_encoder_bn: False
posenc_LapPE:
  enable: True
  eigen: {laplacian_norm: none, eigvec_norm: L2, max_freqs: 10}
  model: DeepSet
  dim_pe: 16
  layers: 2
  raw_norm_type: none
train: {mode: custom, batch_size: 128, eval_period: 1, ckpt_period: 100}
model: {type: GPSModel, loss_fun: l1, graph_pooling: mean}
gt:
  layer_type: CustomGatedGCN+Transformer
  layers: 4
  n_heads: 4
  dim_hidden: 96
  dropout: 0.0
  attn_dropout: 0.5
  layer_norm: False
  batch_norm: True
gnn:
  head: default
  layers_pre_mp: 0
  layers_post_mp: 1
  dim_inner: 96
  batchnorm: True
  act: relu
  dropout: 0.0
optim:
  clip_grad_norm: True
  optimizer: adamW
  weight_decay: 0.0
  base_lr: 0.0003
  max_epoch: 200
  scheduler: cosine_with_warmup
  num_warmup_epochs: 10
"""
