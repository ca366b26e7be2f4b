"""A look at a pickle's opcodes before any of them is executed.

Python's unpickler believes the lengths and memo numbers in the stream and reserves memory for them: four
changed bytes in a file can ask for 64 GB. It also builds tuples in tuples to any depth, and hashing one as a
dict's key then overflows the interpreter's stack. :func:`scan` walks the stream with the nesting of every
object on the unpickler's stack, refuses opcodes that datasets do not use, lengths beyond the end of the file,
memo numbers that the stream cannot have reached, and deep nesting.
"""

from __future__ import annotations

import pickle as p
from pickle import UnpicklingError

_MOST_NESTING = 50  # the public files have 4
_MARK = -1  # on the stack of depths

# How many bytes of argument follow an opcode that pushes one object.
_PUSH = {
    **dict.fromkeys((p.NONE, p.NEWTRUE, p.NEWFALSE, p.EMPTY_LIST, p.EMPTY_DICT, p.EMPTY_TUPLE), 0),
    p.BININT1: 1,
    p.BININT2: 2,
    p.BININT: 4,
    p.BINFLOAT: 8,
}
# How many bytes hold the length of what follows; pushes one object.
_PREFIXED = {
    **dict.fromkeys((p.SHORT_BINUNICODE, p.SHORT_BINBYTES, p.SHORT_BINSTRING, p.LONG1), 1),
    **dict.fromkeys((p.BINUNICODE, p.BINBYTES, p.BINSTRING, p.LONG4), 4),
    **dict.fromkeys((p.BINUNICODE8, p.BINBYTES8), 8),
}
# How many objects are popped, whether what is pushed in their place nests them (else it has no depth).
_REPLACE = {
    p.TUPLE1: (1, True),
    p.TUPLE2: (2, True),
    p.TUPLE3: (3, True),
    p.REDUCE: (2, True),
    p.NEWOBJ: (2, True),
    p.STACK_GLOBAL: (2, False),
    p.BINPERSID: (1, False),
}
# How many objects are popped; what is below them stays.
_DROP = {p.POP: 1, p.APPEND: 1, p.SETITEM: 2, p.BUILD: 1}
_DROP_TO_MARK = (p.APPENDS, p.SETITEMS)
_GET = {p.BINGET: 1, p.LONG_BINGET: 4}
_PUT = {p.BINPUT: 1, p.LONG_BINPUT: 4, p.MEMOIZE: 0}

_PUSH_CODES = {code[0]: size for code, size in _PUSH.items()}
_PREFIXED_CODES = {code[0]: size for code, size in _PREFIXED.items()}
_REPLACE_CODES = {code[0]: effect for code, effect in _REPLACE.items()}
_DROP_CODES = {code[0]: count for code, count in _DROP.items()}
_DROP_TO_MARK_CODES = {code[0] for code in _DROP_TO_MARK}
_GET_CODES = {code[0]: size for code, size in _GET.items()}
_PUT_CODES = {code[0]: size for code, size in _PUT.items()}
_STOP, _GLOBAL, _FRAME, _PROTO = (code[0] for code in (p.STOP, p.GLOBAL, p.FRAME, p.PROTO))
_MARK_CODE, _TUPLE = p.MARK[0], p.TUPLE[0]


def scan(stream: bytes, start: int = 0) -> int:
    """Where the pickle that begins at ``start`` ends; UnpicklingError if it is cut off, asks for too much or
    nests too deeply."""
    try:
        return _scan(stream, start)
    except (IndexError, ValueError, KeyError) as error:  # of the stack, the marks, the memo
        raise UnpicklingError("it takes objects that it has not made") from error


def _scan(stream: bytes, start: int) -> int:
    at, end = start, len(stream)
    stack: list[
        int
    ] = []  # how deeply tuples and calls are nested in each object; lists and dicts end a chain
    memo: dict[int, int] = {}
    while at < end:
        code = stream[at]
        at += 1
        if code in _PUT_CODES:
            size = _PUT_CODES[code]
            number = int.from_bytes(stream[at : at + size], "little") if size else len(memo)
            if number > at:
                raise UnpicklingError("a memo number that it cannot have reached")
            memo[number] = stack[-1]
            at += size
        elif code in _PREFIXED_CODES:
            size = _PREFIXED_CODES[code]
            at += size + int.from_bytes(stream[at : at + size], "little")
            stack.append(0)
        elif code in _PUSH_CODES:
            at += _PUSH_CODES[code]
            stack.append(0)
        elif code in _GET_CODES:
            size = _GET_CODES[code]
            stack.append(memo[int.from_bytes(stream[at : at + size], "little")])
            at += size
        elif code in _REPLACE_CODES:
            count, nests = _REPLACE_CODES[code]
            _replace(stack, len(stack) - count, nests)
        elif code in _DROP_CODES:
            del stack[len(stack) - _DROP_CODES[code] :]
        elif code in _DROP_TO_MARK_CODES:
            del stack[_last_mark(stack) :]
        elif code == _MARK_CODE:
            stack.append(_MARK)
        elif code == _TUPLE:
            mark = _last_mark(stack)
            del stack[mark]
            _replace(stack, mark, True)
        elif code == _STOP:
            return at
        elif code == _PROTO:
            at += 1
        elif code == _FRAME:
            if int.from_bytes(stream[at : at + 8], "little") > end - at:
                raise UnpicklingError("a frame beyond its end")
            at += 8
        elif code == _GLOBAL:
            at = stream.find(b"\n", stream.find(b"\n", at) + 1) + 1 or end + 1
            stack.append(0)
        else:
            raise UnpicklingError(f"an opcode {bytes([code])!r} that datasets do not use")
    raise UnpicklingError("it is cut off")


def _replace(stack: list[int], first: int, nests: bool) -> None:
    """Put one object in the place of those from ``first`` on."""
    if first < 0:
        raise IndexError
    parts = stack[first:]
    depth = 1 + max(parts, default=0) if nests else 0
    if depth > _MOST_NESTING:
        raise UnpicklingError(f"tuples nested more than {_MOST_NESTING} deep")
    stack[first:] = [depth]


def _last_mark(stack: list[int]) -> int:
    return len(stack) - 1 - stack[::-1].index(_MARK)
