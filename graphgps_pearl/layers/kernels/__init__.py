"""Optional fast paths of the layers; :mod:`graphgps_pearl.switches` turns them off.

``attention.attend`` serves softmax attention with dropout, that is, in training. On a CPU it is 1.9 times
(a batch of ZINC) and 2.3 times (Peptides) as fast as the plain ``layers.attention.attend``, backward pass
included, and keeps one matrix of scores instead of three. Without dropout the two are equally fast, so there
the plain one always runs.

``dropout.dropout`` serves dropout in training on a CPU: an eighth of torch's time.

``pair_gather.project`` serves the attention bias of B-PEARL's pairs. Its forward pass is that of the plain
``layers.pair_bias.project``; its backward pass replaces the sum over equal rows by a gather
where every pair has a row of its own.

``compiled`` and ``compiled_pairs`` are the first and the last of these in C++, where the machine has a
compiler. ``compiled_layer`` has GINE's messages in one pass over the edges, and the linear maps of the layers
on processors where torch's products are slow.
"""
