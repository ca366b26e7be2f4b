"""Optional fast paths of the encoders; :mod:`graphgps_pearl.switches` turns them off.

``pair_gather.gather`` serves the attention bias of B-PEARL's pairs. Its forward pass is that of the plain
``encoders.pair_bias.gather``; its backward pass replaces sums over columns by sums over rows, or by a gather
where every pair has a row of its own.
"""
