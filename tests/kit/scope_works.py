"""Launches of micro programs for tests: the instructions of a vector function's kernel, random ones, their time."""

from __future__ import annotations

from random import Random

from castsim.machines.vector_function.launched_scope import Scope, ScopeInstruction, TimingKind

LOAD = ScopeInstruction("vlds", TimingKind.LOAD, size=256)
STORE = ScopeInstruction("vsts", TimingKind.STORE, size=256)


def compute(name: str, width: int = 32) -> ScopeInstruction:
    return ScopeInstruction(name, TimingKind.COMPUTE, width)


def barrier(word: str) -> ScopeInstruction:
    return ScopeInstruction("mem_bar", TimingKind.BARRIER, word=word)


def pair(producer: str, consumer: str) -> Scope:
    scope = Scope()
    (name,) = scope.issue(LOAD, (), 1)
    (name,) = scope.issue(compute(producer), (name,), 1)
    (name,) = scope.issue(compute(consumer), (name,), 1)
    scope.issue(STORE, (name,), 0, 8192)
    return scope


def wide() -> Scope:
    """Trips of two chains of forty instructions, more than registers and queue hold, and some for the first port."""
    scope = Scope()
    scope.begin_loop(12)
    for trip in range(12):
        names = [scope.issue(LOAD, (), 1, trip * 512 + 256 * side)[0] for side in (0, 1)]
        for step in range(40):
            kind = compute("vdup" if step % 10 == 9 else "vadd")
            names = [scope.issue(kind, (name,), 1)[0] for name in names]
        store = ScopeInstruction("vstsx2", TimingKind.STORE, word="INTLV_B32", size=512)
        scope.issue(store, names, 0, 65536 + 512 * trip)
        scope.end_trip()
    return scope


def dense() -> Scope:
    """Constants made and stored: dispatched faster than anything else, they wait for ports."""
    scope = Scope()
    for number in range(300):
        (name,) = scope.issue(compute("vbr"), (), 1)
        if number % 50 == 0:
            scope.issue(STORE, (name,), 0, 256 * number)
    return scope


def integers(mnemonic: str) -> Scope:
    """An instruction on integer lanes many times over, on what does not wait for it."""
    scope = Scope()
    for number in range(40):
        (name,) = scope.issue(ScopeInstruction(mnemonic, TimingKind.COMPUTE, 32, integers=True), (), 1)
        if number % 10 == 9:
            scope.issue(STORE, (name,), 0, 256 * number)
    return scope


def random_scope(rng: Random) -> Scope:
    """A launch of random instructions in random loops, whose accesses lie anywhere in the buffer."""
    scope = Scope()
    _random_items(scope, rng, [], 0)
    return scope


_COMPUTES = (
    *("vadd", "vmul", "vmax", "vabs", "vdup", "vsel", "vand", "vexp", "vdiv", "vcvt", "vtrc", "vintlv", "vcadd"),
    *("vmuls", "vbr", "vselr", "vor", "vshls"),
)


def _random_items(scope: Scope, rng: Random, known: list[int], depth: int) -> None:
    for _ in range(rng.randint(1, 9 if depth else 5)):
        place = rng.randrange(0, 8192, 32)
        match rng.choice("LLCCCCCCSSSBPUTO"):
            case "L":
                size = rng.choice((32, 64, 128, 256, 512))
                load = ScopeInstruction("vlds", TimingKind.LOAD, size=size, updates=rng.random() < 0.1)
                known += scope.issue(load, (), rng.choice((1, 1, 2)), place)
            case "U":
                known += scope.issue(ScopeInstruction("vlds", TimingKind.LOAD, size=128, unpacks=True), (), 1, place)
            case "C":
                reads = rng.sample(known, min(len(known), rng.randint(0, 3)))
                known += scope.issue(compute(rng.choice(_COMPUTES), rng.choice((16, 32))), reads, 1)
            case "S":
                word = rng.choice(("", "", "INTLV_B32"))
                store = ScopeInstruction("vsts", TimingKind.STORE, size=rng.choice((0, 32, 256)), word=word)
                scope.issue(store, rng.sample(known, min(len(known), 2)), 0, place)
            case "B":
                scope.issue(barrier(rng.choice(("VST_VST", "VST_VLD", "VLD_VST", "VV_ALL"))))
            case "P":
                known += scope.issue(
                    ScopeInstruction("plt", TimingKind.PREDICATE), rng.sample(known, min(len(known), 1)), 1
                )
            case "T":
                scope.issue(ScopeInstruction("select", TimingKind.SELECT))
            case _ if depth < 3:
                trips = rng.choice((0, 1, 2, 3, 7))
                scope.begin_loop(trips)
                for _ in range(trips):
                    _random_items(scope, rng, known, depth + 1)
                    scope.end_trip()
