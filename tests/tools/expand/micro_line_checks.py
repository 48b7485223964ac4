"""Micro text read line by line, with nothing of the parser: names, types, lanes, masks, places."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = r"%[\w.#$-]+"
_BITS = {
    "f32": 32, "f16": 16, "bf16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "!pto.hif8": 8, "!pto.f4E2M1x2": 8,
    "!pto.f4E1M2x2": 8, "f4E2M1x2": 8, "f4E1M2x2": 8, "hif8": 8,
    **{f"{sign}{bits}": bits for sign in ("i", "si", "ui") for bits in (8, 16, 32, 64)},
}  # fmt: skip
_OUTSIDE = ("mte_", "set_flag", "wait_flag", "barrier", "set_ctrl")
_ANYWHERE = ("castptr", "addptr", "vecscope")
_OTHER_MASKS = ("ppack", "punpack", "pbitcast")
"""Predicate instructions whose operand and result have different widths."""


@dataclass
class Lines:
    """What is known while the lines are read: types of names by scope, and whether a vecscope is open."""

    scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])
    kinds: list[str] = field(default_factory=list)

    def define(self, name: str, kind: str) -> None:
        assert not any(name in scope for scope in self.scopes), f"{name} is defined twice"
        self.scopes[-1][name] = kind

    def type_of(self, name: str) -> str:
        found = next((scope[name] for scope in reversed(self.scopes) if name in scope), None)
        assert found is not None, f"{name} is used where it is not defined"
        return found

    @property
    def inside(self) -> bool:
        return "vecscope" in self.kinds


def split(text: str) -> list[str]:
    """Types side by side, of which some have commas in angle brackets."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += letter in "<(" or -(letter == ">" and text[place - 1] != "-") or -(letter == ")")
        if letter == "," and depth == 0:
            found.append(text[start:place].strip())
            start = place + 1
    return [*found, text[start:].strip()] if text.strip() else []


def lanes(kind: str) -> int:
    """The bits of a lane of a register type, whose registers have 2048 bits."""
    found = re.fullmatch(r"!pto\.vreg<(\d+)x(.+)>", kind)
    assert found, kind
    bits = _BITS[found.group(2)]
    assert int(found.group(1)) * bits == 2048, kind
    return bits


def check(text: str) -> int:
    """Check every line; return how many instructions there are."""
    state, count = Lines(), 0
    for line in text.splitlines():
        plain = line.strip()
        if not plain or plain.startswith("//"):
            continue
        count += _line(state, plain)
    assert not state.kinds
    return count


def _line(state: Lines, plain: str) -> bool:
    if plain.startswith("module"):
        state.kinds.append("module")
    elif plain.startswith("func.func"):
        state.kinds.append("func")
        state.scopes.append({})
        inside = plain[plain.index("(") + 1 : plain.index(") attributes")]
        for each in split(inside):
            name, _, kind = each.partition(": ")
            state.define(name, kind)
    elif plain.startswith("}"):
        if state.kinds.pop() not in ("module", "func"):
            state.scopes.pop()
        if plain != "}":
            state.kinds.append("region")
            state.scopes.append({})
    elif plain.startswith("^bb0("):
        for each in split(plain[5:-2]):
            name, _, kind = each.partition(": ")
            state.define(name, kind)
    elif plain.endswith("{"):
        _opened(state, plain)
    else:
        return _operation(state, plain)
    return False


def _opened(state: Lines, plain: str) -> None:
    results, _, head = plain.rpartition(" = scf.") if " = scf." in plain else ("", "", plain)
    names = [each.strip() for each in results.split(",")] if results else []
    carried = re.findall(rf"({_NAME}) = ({_NAME})", head[head.find("iter_args") :] if "iter_args" in head else
                         head if "while" in head else "")  # fmt: skip
    types = split(head[head.rindex("-> (") + 4 : head.rindex(")")]) if "-> (" in head else []
    for _, start in carried:
        state.type_of(start)
    for name, kind in zip(names, types, strict=True):
        state.define(name, kind)
    for name in re.findall(rf"(?:to|step|if) ({_NAME})", head):
        state.type_of(name)
    state.kinds.append("vecscope" if "pto.vecscope" in plain else "region")
    state.scopes.append({})
    variable = re.search(rf"for ({_NAME}) =", head)
    if variable:
        state.define(variable.group(1), "index")
    for (name, start), kind in zip(carried, types, strict=True):
        assert state.type_of(start) == kind, plain
        state.define(name, kind)


def _operation(state: Lines, plain: str) -> bool:
    left, _, right = plain.partition(" = ") if re.match(rf"{_NAME}(, {_NAME})* = ", plain) else ("", "", plain)
    names = [each.strip() for each in left.split(",")] if left else []
    if right.startswith(("arith.", "math.")):
        _scalar(state, names[0], right)
        return False
    operation = re.match(r"(?:pto\.)?([\w.]+)", right)
    assert operation
    name = operation.group(1)
    if name == "return":
        return False
    text, _, types = right.partition(" : ")
    given, _, results = types.partition(" -> ")
    operands = re.findall(_NAME, text)
    if name == "scf.condition":
        assert state.type_of(operands.pop(0)) == "i1"
    if name == "addptr":
        assert state.type_of(operands.pop()) == "index"
    if name in ("vlds", "vsts"):  # whose offset has no type in the text
        offset = re.search(rf"\[({_NAME})\]", text)
        assert offset and state.type_of(offset.group(1)) == "index"
        operands.remove(offset.group(1))
    if names and not operands:
        given, results = "", given
    kinds = [each.removeprefix("pad ") for each in split(given)]
    assert len(operands) == len(kinds) or not right.startswith("pto."), plain
    for operand, kind in zip(operands, kinds, strict=False):
        assert state.type_of(operand) == kind, f"{operand} is {state.type_of(operand)}: {plain}"
    for operand in operands:
        state.type_of(operand)
    if right.startswith("pto."):
        _vector(state, name, kinds, split(results), plain)
    for result, kind in zip(names, split(results), strict=True):
        state.define(result, kind)
    return True


def _scalar(state: Lines, name: str, right: str) -> None:
    head, _, kind = right.rpartition(" : ")
    operands = re.findall(_NAME, head)
    if " to " in kind:
        before, kind = kind.split(" to ")
        assert state.type_of(operands[0]) == before
    elif "cmp" in head:
        assert {state.type_of(each) for each in operands} == {kind}
        kind = "i1"
    else:
        wanted = operands[1:] if "select" in head else operands
        assert {state.type_of(each) for each in wanted} <= {kind}, right
    state.define(name, kind)


def _vector(state: Lines, name: str, kinds: list[str], results: list[str], plain: str) -> None:
    """An instruction stands where it may; masks have the width of the lanes that they govern."""
    outside = name.startswith(_OUTSIDE)
    assert name in _ANYWHERE or state.inside != outside, f"misplaced: {plain}"
    registers = [each for each in (*kinds, *results) if each.startswith("!pto.vreg")]
    for each in registers:
        lanes(each)
    masks = {int(each[len("!pto.mask<b") : -1]) for each in (*kinds, *results) if each.startswith("!pto.mask")}
    if not masks or name in _OTHER_MASKS:
        return
    assert len(masks) == 1, plain
    if not registers:
        return
    (bits,) = masks
    packed = re.search(r'dist = "(?:PK4?|NORM)_B(\d+)"', plain)
    assert bits == min(32, int(packed.group(1)) if packed else lanes(registers[0])), plain
