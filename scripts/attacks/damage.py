"""What a failing disk or memory does to a file."""

from __future__ import annotations

import random

_PAGE = 4096


def damage(content: bytes, rng: random.Random) -> bytes:
    """One bit flipped; in one of ten, a page of zeros instead."""
    changed, place = bytearray(content), rng.randrange(len(content))
    if rng.randrange(10) == 0:
        changed[place : place + _PAGE] = bytes(len(changed[place : place + _PAGE]))
    else:
        changed[place] ^= 1 << rng.randrange(8)
    return bytes(changed)
