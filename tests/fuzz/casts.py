"""Random casts by every tier and in rational arithmetic, against the reference.

One cast is a pair of formats, a policy and a set of codes. Those of the compiled tiers come a hundred to a pair, so
that a kernel serves many of them.
"""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import oracle
from kit.numerics_samples import samples, stored_mask

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Codes, Format, Rounding
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import Policy, abstract_policy, legal_overflows, legal_roundings
from castsim.numerics.tiers import Tier, convert_codes

_NAMES = tuple(FORMATS)
PER_PAIR = 100
"""Casts of a pair that follow each other."""


@cache
def _policies(src: Format, dst: Format) -> tuple[Policy, ...]:
    """Return the policies of a pair, in the order of their modes; those that come to the same are one."""
    modes = [mode for mode in legal_roundings(src, dst) if mode is not Rounding.STOCHASTIC]
    found = [abstract_policy(src, dst, mode, overflow) for mode in (None, *modes)
             for overflow in (None, *legal_overflows(dst))]  # fmt: skip
    return tuple(dict.fromkeys(found))


def _codes(src: Format, number: int, random: Random) -> Codes:
    """Return some codes of a format: of short ones now and then all, else a part."""
    codes = samples(src, seed=number, count=300)
    if src.name == "bool":
        codes = np.arange(256, dtype=np.uint8)
    step = random.choice((1, 2, 5))
    if codes.size > 4096 and number % 16:
        step = random.randrange(29, 257, 2)  # odd: every low bit comes
    return codes[random.randrange(step) :: step]


def _difference(codes: Codes, src: Format, dst: Format, policy: Policy, tiers: tuple[Tier | None, ...]) -> str | None:
    expected = cast_codes(codes, src, dst, policy)
    for tier in tiers:
        try:
            found = convert_codes(codes, src, dst, policy, tier=tier)
        except IllegalError:
            continue
        if not np.array_equal(found, expected):
            at = int(np.flatnonzero(found != expected)[0])
            return (f"{src.name} -> {dst.name} {policy}: {tier} gives {found[at]:#x} for {codes[at]:#x}, "
                    f"not {expected[at]:#x}")  # fmt: skip
    return None


def _cast(number: int) -> tuple[Random, Format, Format, Policy]:
    random = Random(f"cast {number}")
    src, dst = FORMATS[random.choice(_NAMES)], FORMATS[random.choice(_NAMES)]
    return random, src, dst, random.choice(_policies(src, dst))


def casts(number: int) -> str | None:
    random, src, dst, policy = _cast(number)
    return _difference(_codes(src, number, random), src, dst, policy, (None, Tier.TABLE))


@cache
def _pairs() -> list[tuple[Format, Format]]:
    found = [(src, dst) for src in FORMATS.values() for dst in FORMATS.values()]
    Random("pairs").shuffle(found)
    return found


def compiled(number: int) -> str | None:
    """A cast by the kernels of whole families; those of one policy of every hundred by its own kernel, too."""
    block, place = divmod(number, PER_PAIR)
    src, dst = _pairs()[block % len(_pairs())]
    policies = _policies(src, dst)
    policy = policies[place % len(policies)]
    own = policy is Random(f"policy {block}").choice(policies)
    codes = _codes(src, number, Random(f"compiled {number}"))
    return _difference(codes, src, dst, policy, (Tier.GENERIC, Tier.COMPILED) if own else (Tier.GENERIC,))


def exact(number: int) -> str | None:
    """A few codes of a cast in rational arithmetic, which shares nothing with the product."""
    random, src, dst, policy = _cast(number)
    every = samples(src, seed=number, count=100)
    codes = every[random.sample(range(len(every)), min(12, len(every)))]
    found = cast_codes(codes, src, dst, policy)
    for code, got in zip(codes, found, strict=True):
        if policy.rounding is Rounding.HYBRID and src.name == "f16" and not int(code) & 0x7C00:
            continue  # of subnormals the sources say nothing (docs/reference/formats.md section 2)
        try:
            expected = oracle.cast(int(code), src.name, dst.name, str(policy.rounding), str(policy.overflow))
        except oracle.Refused:  # modes of E8M0 that no specification has
            return None
        if int(got) & stored_mask(dst) != expected & stored_mask(dst):
            return f"{src.name} -> {dst.name} {policy}: {int(got):#x} for {int(code):#x}, not {expected:#x}"
    return None
