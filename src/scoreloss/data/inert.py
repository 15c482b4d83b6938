"""A pickle read as data: its opcodes build tuples, lists and records, and nothing is imported or called.

It knows the opcodes that pandas writes for a table, and no others.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any

MARK = object()
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": (), "MARK": MARK}
PLAIN = (
    "SHORT_BINUNICODE",
    "BINUNICODE",
    "BINFLOAT",
    "BININT",
    "BININT1",
    "BININT2",
    "BYTEARRAY8",
    "SHORT_BINBYTES",
)
IGNORED = ("PROTO", "FRAME", "STOP")


@dataclass
class Record:
    """What a pickle would call or fill: the name of the thing, what it is given, and its state."""

    name: Any
    arguments: Any
    state: Any = None


def read(content: bytes) -> Any:
    """The value that a pickle describes; ``ValueError`` for an opcode that is not known here."""
    stack: list[Any] = []
    memo: list[Any] = []

    def since_mark() -> list[Any]:
        start = max(place for place, item in enumerate(stack) if item is MARK)
        items = stack[start + 1 :]
        del stack[start:]
        return items

    for opcode, argument, _ in pickletools.genops(content):
        name = opcode.name
        if name in PLAIN:
            stack.append(argument)
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name == "MEMOIZE":
            memo.append(stack[-1])
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[int(argument or 0)])
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "APPENDS":
            items = since_mark()
            stack[-1].extend(items)
        elif name == "SETITEMS":
            items = since_mark()
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name == "TUPLE":
            stack.append(tuple(since_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            size = int(name[-1])
            stack[-size:] = [tuple(stack[-size:])]
        elif name == "SETITEM":
            key, value = stack[-2:]
            del stack[-2:]
            stack[-1][key] = value
        elif name in ("STACK_GLOBAL", "REDUCE", "NEWOBJ"):
            stack[-2:] = [Record(*stack[-2:])]
        elif name == "BUILD":
            state = stack.pop()
            stack[-1].state = state
        elif name not in IGNORED:
            raise ValueError(f"the opcode {name} is not known")
    return stack[-1]
