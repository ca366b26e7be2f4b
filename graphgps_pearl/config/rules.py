"""placeholder"""

from yacs.config import CfgNode


def check(cfg: CfgNode, name: str) -> None:
    """x"""
