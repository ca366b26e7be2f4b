"""A look at a pickle's opcodes before any of them is executed.

Python's unpickler believes the lengths and memo numbers in the stream and reserves memory for them: four
changed bytes in a file can ask for 64 GB. :func:`scan` walks the stream, refuses opcodes that datasets do not
use, lengths beyond the end of the file and memo numbers that the stream cannot have reached.
"""

from __future__ import annotations

import pickle as p
from pickle import UnpicklingError

# How many bytes of argument follow an opcode.
_FIXED = {
    **dict.fromkeys((p.MARK, p.STOP, p.POP, p.NONE, p.NEWTRUE, p.NEWFALSE, p.BINPERSID), 0),
    **dict.fromkeys((p.EMPTY_LIST, p.EMPTY_DICT, p.EMPTY_TUPLE, p.APPEND, p.APPENDS, p.MEMOIZE), 0),
    **dict.fromkeys((p.SETITEM, p.SETITEMS, p.TUPLE, p.TUPLE1, p.TUPLE2, p.TUPLE3), 0),
    **dict.fromkeys((p.STACK_GLOBAL, p.REDUCE, p.BUILD), 0),
    **dict.fromkeys((p.PROTO, p.BININT1, p.BINGET, p.BINPUT), 1),
    p.BININT2: 2,
    p.BININT: 4,
    p.LONG_BINGET: 4,
    p.BINFLOAT: 8,
}
# How many bytes hold the length of what follows.
_PREFIXED = {
    **dict.fromkeys((p.SHORT_BINUNICODE, p.SHORT_BINBYTES, p.SHORT_BINSTRING, p.LONG1), 1),
    **dict.fromkeys((p.BINUNICODE, p.BINBYTES, p.BINSTRING, p.LONG4), 4),
    **dict.fromkeys((p.BINUNICODE8, p.BINBYTES8), 8),
}
_FIXED_BY_CODE = {code[0]: size for code, size in _FIXED.items()}
_PREFIXED_BY_CODE = {code[0]: size for code, size in _PREFIXED.items()}
_STOP, _GLOBAL, _FRAME, _LONG_BINPUT = (code[0] for code in (p.STOP, p.GLOBAL, p.FRAME, p.LONG_BINPUT))


def scan(stream: bytes, start: int = 0) -> int:
    """Where the pickle that begins at ``start`` ends; UnpicklingError if it is cut off or asks for too
    much."""
    at, end = start, len(stream)
    fixed, prefixed = _FIXED_BY_CODE, _PREFIXED_BY_CODE
    while at < end:
        code = stream[at]
        at += 1
        if code in fixed:
            at += fixed[code]
            if code == _STOP:
                return at
        elif code in prefixed:
            size = prefixed[code]
            at += size + int.from_bytes(stream[at : at + size], "little")
        elif code == _LONG_BINPUT:
            if int.from_bytes(stream[at : at + 4], "little") > at:
                raise UnpicklingError("a memo number that it cannot have reached")
            at += 4
        elif code == _FRAME:
            if int.from_bytes(stream[at : at + 8], "little") > end - at:
                raise UnpicklingError("a frame beyond its end")
            at += 8
        elif code == _GLOBAL:
            at = stream.find(b"\n", stream.find(b"\n", at) + 1) + 1 or end + 1
        else:
            raise UnpicklingError(f"an opcode {bytes([code])!r} that datasets do not use")
    raise UnpicklingError("it is cut off")
