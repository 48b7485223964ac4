"""Results that requests share: within a process, found by their content; for shipped targets, as recorded data.

A matrix asks thousands of times for requests that differ only in name: one instruction run on the same codes, one chain
proven for the same cast, one program timed. `Kept` caches such results; `Shared` does too, but computes them again
within `unshared()`, against which tests and benchmarks compare. Both are bounded: above `most` results, the least
recently used one is dropped. Every process has its own, which its threads share.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from castsim.isa.dataclass import MISSING, dataclass, fields
from castsim.isa.formats import IntFormat, Overflow, Rounding, format_named
from castsim.numerics.cast import Scale
from castsim.numerics.policy import E8M0Rule, InfinityWrap, NanToFloat, NanToInteger, Policy
from castsim.targets.loader import Target, TileTarget
from castsim.tools.lowering.steps import And, FormatCast, Integral, Primitive, Scaled

_Found = TypeVar("_Found")
_Thing = TypeVar("_Thing")


@dataclass(slots=True)
class _Switch:
    on: bool = True


_SHARING = _Switch()


@contextmanager
def unshared() -> Iterator[None]:
    """Disable sharing, as if each request were the only one."""
    before, _SHARING.on = _SHARING.on, False
    try:
        yield
    finally:
        _SHARING.on = before


class Kept(Generic[_Found]):
    """Cache of up to `most` results by key; for module variables, which live as long as the process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: OrderedDict[Hashable, tuple[_Found, object]] = OrderedDict()
        self._lock = Lock()

    def of(self, key: Hashable, make: Callable[[], _Found], owners: object = None) -> _Found:
        """Return the result of a key, computed on first use; an error of `make` is not cached.

        If the key contains identities (`id`), `owners` are their objects: kept as long as the result, so
        no other object can get the same identity. If threads compute one result at once, all get the first one's.
        """
        with self._lock:
            entry = self._found.get(key)
            if entry is not None:
                self._found.move_to_end(key)
                return entry[0]
        value = make()
        with self._lock:
            entry = self._found.setdefault(key, (value, owners))
            if len(self._found) > self._most:
                self._found.popitem(last=False)
        return entry[0]

    def of_all(self, keys: Sequence[Hashable], make: Callable[[list[int]], Sequence[_Found]]) -> list[_Found]:
        """Return the findings of keys; `make` gets the places of those that are not there and makes all at once."""
        with self._lock:
            there = {key: self._found[key][0] for key in keys if key in self._found}
        places = {key: index for index, key in reversed([*enumerate(keys)]) if key not in there}
        missing = sorted(places.values())
        for index, finding in zip(missing, make(missing) if missing else (), strict=True):
            there[keys[index]] = self.of(keys[index], lambda finding=finding: finding)  # type: ignore[misc]
        return [there[key] for key in keys]

    def clear(self) -> None:
        """Remove all results."""
        with self._lock:
            self._found.clear()

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self._found)


_EVERY: list[Callable[[], None]] = []
"""Functions that empty the caches for `forget`."""


def forget() -> None:
    """Remove everything that requests share: all `Shared` results, and the representatives of equal objects."""
    for clear in _EVERY:
        clear()


class Shared(Kept[_Found]):
    """Cache whose results are computed each time within `unshared`."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        _EVERY.append(self.clear)

    def of(self, key: Hashable, make: Callable[[], _Found], owners: object = None) -> _Found:
        """See `Kept`."""
        return super().of(key, make, owners) if _SHARING.on else make()

    def of_all(self, keys: Sequence[Hashable], make: Callable[[list[int]], Sequence[_Found]]) -> list[_Found]:
        """See `Kept`."""
        return super().of_all(keys, make) if _SHARING.on else list(make([*range(len(keys))]))


class Equals(Generic[_Thing]):
    """One representative of all equal objects: for objects without a hash, which are compared."""

    def __init__(self, most: int) -> None:
        self._known: list[_Thing] = []
        self._by_identity: Kept[_Thing] = Kept(most)
        self._most = most
        _EVERY.append(self.clear)

    def clear(self) -> None:
        """Remove all objects: the next of equal ones becomes the representative."""
        self._known = []
        self._by_identity.clear()

    def first(self, thing: _Thing) -> _Thing:
        """Return the representative of the objects equal to `thing`; `thing` itself if it is new."""
        return self._by_identity.of(id(thing), lambda: self._looked_up(thing), thing)

    def _looked_up(self, thing: _Thing) -> _Thing:
        match = next((candidate for candidate in self._known if candidate == thing), None)
        if match is not None:
            return match
        self._known = [*self._known, thing][-self._most :]
        return thing


class Numbers:
    """Numbers for equal objects, for keys that are used far more often than their parts are created."""

    def __init__(self, most: int) -> None:
        self._next = count()
        self._by_value: Kept[int] = Kept(most)
        self._by_identity: Kept[int] = Kept(most)

    def of(self, thing: Hashable) -> int:
        """Return the number of an object; equal objects have the same one while it is cached, others never do."""
        return self._by_identity.of(id(thing), lambda: self._by_value.of(thing, lambda: next(self._next)), thing)


# Data of shipped targets: what their tile casts do, with the description's options and with each setting of options
# that is searched, and the cycles of the programs that conformance ranks. A record counts only for the very facts and
# sources that it was made from; else casts are traced and programs simulated. Other descriptions have no record.

Primitives = tuple[Primitive, ...]
Behaviours = Mapping[tuple[str, str], Sequence[Primitives]]
"""Effect of each form of each pair on an element."""

RECORDS = Path(__file__).parent / "records"
_WORDS: dict[str, Callable[[str], Any]] = {
    "rounding": Rounding,
    "overflow": Overflow,
    "nan_to_float": NanToFloat,
    "nan_to_integer": NanToInteger,
    "infinity_wrap": InfinityWrap,
    "subnormal_rounding": Rounding,
    "e8m0_rule": E8M0Rule,
}


@dataclass(frozen=True, slots=True)
class RecordedCasts:
    """The record of a target: its options, and the numbers of each form's effect by setting and pair."""

    options: Mapping[str, str]
    behaviours: Sequence[Primitives]
    settings: Mapping[str, Mapping[str, Sequence[int]]]

    def row(self, target: TileTarget, src: str, dst: str) -> tuple[Primitives, ...] | None:
        """Return the effect of each form of a pair, None if the record has no setting with the options' values."""
        values = _option_values(target)
        changed = [f"{name}={value}" for name, value in values.items() if self.options.get(name) != value]
        setting, pair = self.settings.get(" ".join(changed)), f"{src} {dst}"
        if setting is None or pair not in self.settings[""] or values.keys() != self.options.keys():
            return None
        return tuple(self.behaviours[number] for number in setting.get(pair, self.settings[""][pair]))


def recorded_casts(target: TileTarget, sources: Sequence[str]) -> RecordedCasts | None:
    """Return the shipped record of a target, None if none exists for its facts and these sources.

    `sources` are the machine's files that implement its casts, relative to the folder of the machines.
    """
    return _RECORDED.of(_facts(target), lambda: _read_casts(target, sources), target)


def _facts(target: Target) -> tuple[int, ...]:
    """Return the identities of a target's facts, values of its options aside."""
    return tuple(id(getattr(target, name)) for name in type(target).model_fields if name != "options")


def _read_casts(target: TileTarget, sources: Sequence[str]) -> RecordedCasts | None:
    try:
        record = _read_record("casts", target, lambda: _made_from(target, sources))
        policies = [
            Policy(**{key: _WORDS[key](word) if key in _WORDS else word for key, word in row.items()})
            for row in record["policies"]
        ]
        behaviours = [tuple(_primitive(parts, policies) for parts in row) for row in record["behaviours"]]
        return RecordedCasts(record["options"], behaviours, record["settings"])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None  # no record, or not as it was shipped


def _read_record(kind: str, target: Target, made_from: Callable[[], str]) -> Any:
    """Return a shipped record of a target.

    Raises:
        OSError, ValueError: there is none, or not of these facts and sources.
    """
    record = json.loads((RECORDS / f"{kind}_{target.name}.json").read_bytes())
    if record["made_from"] != made_from():
        raise ValueError(kind)
    return record


def recorded_cycles(target: Target) -> Mapping[str, int]:
    """Return the shipped cycles of a target's programs by `program_key`, empty if none are of its facts and sources."""
    return _RECORDED_CYCLES.of(_facts(target), lambda: _read_cycles(target), target)


def _read_cycles(target: Target) -> Mapping[str, int]:
    try:
        record = _read_record("cycles", target, lambda: _timed_by(target))
        return {key: int(cycles) for cycles, keys in record["programs"].items() for key in keys.split()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def record_of_cycles(target: Target, programs: Mapping[str, int]) -> dict[str, object]:
    """Return the record of a target's programs, from their cycles by `program_key`."""
    keys: dict[int, list[str]] = {}
    for key, cycles in sorted(programs.items(), key=lambda row: row[::-1]):
        keys.setdefault(cycles, []).append(key)
    return {"made_from": _timed_by(target), "programs": {str(cycles): " ".join(keys[cycles]) for cycles in keys}}


def program_key(target: Target, program: str) -> str:
    """Return the key of a program on a target, whose options count too."""
    return sha256(repr((_option_values(target), program)).encode()).hexdigest()[:16]


def _timed_by(target: Target) -> str:
    """Return the digest of the facts of a target and of all that times a program."""
    from castsim.tools.distribution.origins import sources_digest  # noqa: PLC0415 - as in `_made_from`

    return sha256(f"{_digest_of_facts(target)} {sources_digest(_TIMING)}".encode()).hexdigest()


_TIMING = (
    "castsim.isa", "castsim.targets", "castsim.engines", "castsim.execution", "castsim.machines", "castsim.running",
)  # fmt: skip


def record_of_casts(
    target: TileTarget, sources: Sequence[str], behaviours_of: Mapping[Iterable[tuple[str, int | str]], Behaviours]
) -> dict[str, object]:
    """Return the record of a target, from the effects by setting; the empty setting comes first."""
    policies, behaviours = _Table(), _Table()
    settings: dict[str, dict[str, list[int]]] = {}
    for setting, casts in behaviours_of.items():
        rows = {" ".join(pair): [behaviours.number(row) for row in forms] for pair, forms in casts.items()}
        usual = settings.get("", {})
        name = " ".join(f"{option}={value}" for option, value in setting)
        settings[name] = {pair: row for pair, row in rows.items() if usual.get(pair) != row}
    written = [[_parts(primitive, policies) for primitive in row] for row in behaviours.things]
    return {
        "made_from": _made_from(target, sources),
        "options": _option_values(target),
        "policies": [_words(policy) for policy in policies.things],
        "behaviours": written,
        "settings": settings,
    }


class _Table:
    """Different things in the order of their first use."""

    def __init__(self) -> None:
        self.things: dict[Any, int] = {}

    def number(self, thing: Hashable) -> int:
        return self.things.setdefault(thing, len(self.things))


def _made_from(target: TileTarget, sources: Sequence[str]) -> str:
    """Return the digest of the facts of a target, values of its options aside, and of the sources of the record."""
    folder = Path(__file__).parents[2]
    names = [
        "tools/lowering/tile_casts.py",
        "numerics/policy.py",
        *(f"machines/{name}" for name in sources),
    ]
    parts = [_digest_of_facts(target).encode()]
    parts += [sha256((folder / name).read_bytes()).digest() for name in names]
    return sha256(b"".join(parts)).hexdigest()


def _digest_of_facts(target: Target) -> str:
    from castsim.tools.distribution.distributing import facts_digest  # noqa: PLC0415 - few requests look for a record

    return _DIGESTS.of(_facts(target), lambda: facts_digest(target.model_copy(update={"options": {}})), target)


def _option_values(target: Target) -> dict[str, str]:
    return {name: str(option.value) for name, option in target.options.items()}


def _words(policy: Policy) -> dict[str, object]:
    """Return the fields of a policy that differ from their defaults."""
    values = {part.name: (getattr(policy, part.name), part.default) for part in fields(policy)}
    return {name: value for name, (value, usual) in values.items() if usual is MISSING or value != usual}


def _parts(primitive: Primitive, policies: _Table) -> list[object]:
    match primitive:
        case FormatCast(src, dst, policy):
            return ["cast", src.name, dst.name, policies.number(policy)]
        case Integral(src, policy):
            return ["integral", src.name, policies.number(policy)]
        case Scaled(src, dst, scale, policy):
            return ["scaled", src.name, dst.name, policies.number(policy), scale.significand, scale.exponent]
        case And(mask):
            return ["and", mask]
    raise TypeError(f"the record of casts has no form for {primitive}")


def _primitive(parts: Sequence[Any], policies: Sequence[Policy]) -> Primitive:
    match parts:
        case ["cast", src, dst, policy]:
            return FormatCast(format_named(src), format_named(dst), policies[policy])
        case ["integral", src, policy]:
            return Integral(format_named(src), policies[policy])
        case ["scaled", src, dst, policy, significand, exponent] if isinstance(integer := format_named(src), IntFormat):
            return Scaled(integer, format_named(dst), Scale(significand, exponent), policies[policy])
        case ["and", int(mask)]:
            return And(mask)
    raise ValueError(parts)


_RECORDED: Shared[RecordedCasts | None] = Shared(16)
_RECORDED_CYCLES: Shared[Mapping[str, int]] = Shared(16)
_DIGESTS: Shared[str] = Shared(16)
