"""The decorator of castsim's dataclasses beside the standard one: every class, however declared, must do the same."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from castsim.isa.dataclass import CALLS_UNCOMPILED, dataclass, field, fields, replace

T = TypeVar("T")
OPTIONS: tuple[dict[str, bool], ...] = (
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"eq": False, "slots": True},
    {"frozen": True, "eq": False},
    {"repr": False},
    {"order": True, "frozen": True, "slots": True},
    {"kw_only": True, "slots": True},
    {"kw_only": True, "frozen": True},
)


def plain(decorate: Any) -> type:
    @decorate
    class Plain:
        """Fields of all sorts."""

        shared: ClassVar[int] = 7
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list, compare=False)
        d: int = field(default=4, repr=False)
        e: int = field(default=5, init=False)
        f: int = field(default=6, kw_only=True, hash=False)

    return Plain


def derived(decorate: Any) -> type:
    @decorate
    class Base:
        a: int
        b: int = 2

    @decorate
    class Derived(Base):
        c: int = 3
        a: int = 1

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", self.b + 1)

    return Derived


def empty(decorate: Any) -> type:
    @decorate
    class Empty:
        """No fields."""

    return Empty


def own_methods(decorate: Any) -> type:
    @decorate
    class Own:
        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 3

        def __repr__(self) -> str:
            return "own"

    return Own


def own_equality(decorate: Any) -> type:
    @decorate
    class Own:  # noqa: PLW1641 - what becomes of its hash is the question
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    return Own


def generic(decorate: Any) -> type:
    @decorate
    class Holder(ABC, Generic[T]):
        a: T

        @property
        def twice(self) -> tuple[T, T]:
            return self.a, self.a

    return Holder


CLASSES = (plain, derived, empty, own_methods, own_equality, generic)
CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((), {}),
    ((1,), {}),
    ((1, "x"), {}),
    ((2, 3), {}),
    ((1, 2, [3], 4), {}),
    ((1, 2, 3, 4, 5, 6), {}),
    ((), {"a": 1}),
    ((), {"a": 1, "b": 2, "c": [3], "d": 4, "f": 9}),
    ((), {"a": 1, "e": 2}),
    ((1,), {"a": 1}),
    ((1,), {"z": 1}),
    ((), {"a": None}),
)


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return type(error), str(error).replace(".<locals>", "")


def behaviour(cls: Any, calls: int) -> list[Any]:
    """Return what objects of a class do, each built `calls` times before."""
    told: list[Any] = [
        cls.__match_args__, cls.__doc__ if cls.__name__ == "Plain" else None, getattr(cls, "__slots__", None),
        [(each.name, each.type, each.kw_only, each.default is dataclasses.MISSING) for each in fields(cls)],
    ]  # fmt: skip
    objects = []
    for values, named in CALLS:
        for _ in range(calls):
            made = outcome(lambda values=values, named=named: cls(*values, **named))
        if isinstance(made, tuple):
            told.append(made)
            continue
        told += [
            "__repr__" in vars(cls) and repr(made),
            [getattr(made, each.name) for each in fields(made)],
            outcome(lambda made=made: dataclasses.asdict(made)),
            outcome(lambda made=made: hash(made))
            if cls.__eq__ is not object.__eq__
            else cls.__hash__ is object.__hash__,
            # The standard one asks the wrong class for names that are no fields (CPython issue 90562).
            fields(cls) and outcome(lambda made=made: setattr(made, "a", 7)),
            fields(cls) and outcome(lambda made=made: delattr(made, "a")),
            outcome(lambda values=values, named=named: repr(replace(cls(*values, **named), a=8)).split("(", 1)[-1])
            if "__repr__" in vars(cls)
            else None,
            dataclasses.is_dataclass(made),
        ]
        objects.append(cls(*values, **named))
    told += [outcome(lambda one=one, other=other: one == other) for one in objects for other in objects]
    told += [outcome(lambda one=one, other=other: one < other) for one in objects for other in objects]
    told += [outcome(lambda one=one: [getattr(copy.copy(one), each.name) for each in fields(one)]) for one in objects]
    told.append(str(inspect.signature(cls)).replace("<factory>", "").split(" -> ")[0].count(","))
    return told


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("declare", CLASSES, ids=lambda declare: declare.__name__)
@pytest.mark.parametrize("calls", [1, CALLS_UNCOMPILED + 1])
def test_a_class_does_what_that_of_the_standard_decorator_does(
    declare: Any, options: dict[str, bool], calls: int
) -> None:
    def expected() -> Any:
        return declare(dataclasses.dataclass(**options))

    wanted = outcome(lambda: behaviour(expected(), calls))
    assert outcome(lambda: behaviour(declare(dataclass(**options)), calls)) == wanted


@dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: tuple[int, ...] = ()


@dataclass(frozen=True)
class WithCache:
    a: int

    @cached_property
    def twice(self) -> int:
        return 2 * self.a


def test_objects_are_pickled_copied_and_cached() -> None:
    kept = Kept(1, (2,))
    assert pickle.loads(pickle.dumps(kept)) == copy.deepcopy(kept) == copy.copy(kept) == kept
    assert WithCache(2).twice == 4
    assert pickle.loads(pickle.dumps(WithCache(2))) == WithCache(2)


def test_dataclasses_of_both_decorators_build_on_each_other() -> None:
    @dataclasses.dataclass(frozen=True)
    class Standard(Kept):
        c: int = 3

    @dataclass(frozen=True)
    class Own(Standard):
        d: int = 4

    assert repr(Own(1)).endswith("Own(a=1, b=(), c=3, d=4)")
    assert Own(1, d=5) == Own(1, (), 3, 5) != Own(1)


def test_super_without_arguments_works_in_a_class_with_slots() -> None:
    @dataclass(slots=True)
    class Base:
        a: int

        @classmethod
        def of(cls, a: int) -> Base:
            return cls(a)

        @property
        def doubled(self) -> int:
            return 2 * self.a

    @dataclass(slots=True)
    class Derived(Base):
        @classmethod
        def of(cls, a: int) -> Base:
            return super().of(a + 1)

        @property
        def doubled(self) -> int:
            return super().doubled + 1

    assert (type(Derived.of(1)), Derived.of(1).doubled) == (Derived, 5)


def test_an_abstract_method_still_has_to_be_declared() -> None:
    @dataclass(slots=True)
    class Base(ABC):
        a: int

        @abstractmethod
        def work(self) -> None: ...

    with pytest.raises(TypeError, match="abstract"):
        Base(1)  # type: ignore[abstract]


def test_a_mutable_default_is_refused() -> None:
    with pytest.raises(ValueError, match="default_factory"):

        @dataclass
        class Wrong:
            a: Any = []  # noqa: RUF012


@pytest.mark.parametrize("kind", ["InitVar[int]", "dataclasses.KW_ONLY"])
def test_what_is_not_supported_is_refused(kind: str) -> None:
    with pytest.raises(TypeError, match="alone"):
        dataclass(type("Wrong", (), {"__annotations__": {"a": kind}}))


def test_a_declaration_compiles_nothing() -> None:
    script = (
        "import builtins, sys; from castsim.isa.dataclass import dataclass, CALLS_UNCOMPILED; ran = []\n"
        "sys.addaudithook(lambda event, about: ran.append(event) if event in ('compile', 'exec') else None)\n"
        "@dataclass(frozen=True, slots=True, order=True)\nclass Kept:\n a: int\n b: int = 2\n"
        "before = len(ran); [hash(Kept(1)) for _ in range(CALLS_UNCOMPILED)]; after = len(ran); Kept(1)\n"
        "print(before, after, len(ran) > after)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "0", "True"]
