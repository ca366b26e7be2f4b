"""PEARL on relational databases: rows are nodes, foreign keys are edges, and rows have time stamps."""

from graphgps_pearl.relational.encoding import HeteroPEARL
from graphgps_pearl.relational.sampling import TemporalSampler

__all__ = ["HeteroPEARL", "TemporalSampler"]
