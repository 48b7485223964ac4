"""The shipped descriptions as they were validated, and the tables that hold them, beside models of pydantic."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest
from makers.checked_targets import files

from castsim.targets import validated
from castsim.targets.description import Frequency, Option, Status, Table, with_facts
from castsim.targets.loader import load_target, target_names
from castsim.targets.validated import AfterValidator, BeforeValidator, Field, model_validator


def parts(content: bytes) -> tuple[list[tuple[str, int]], list[str], Any]:
    """Return the checksums, the names of the sources and what was validated."""
    file = BytesIO(content)
    return pickle.load(file), pickle.load(file), pickle.load(file)


def test_what_is_kept_is_what_the_files_say() -> None:
    kept = {path.stem: path.read_bytes() for path in validated.CHECKED.iterdir()}
    anew = files()
    assert sorted(kept) == sorted(anew)
    stale = [name for name in anew if parts(kept[name]) != parts(anew[name])]
    assert stale == [], "python tests checked_targets"


def test_shipped_descriptions_are_taken_without_pydantic() -> None:
    script = (
        "import sys; from castsim.targets.loader import load_target, target_names, load_specification\n"
        "[load_target(name) for name in target_names()]; load_specification('tosa')\n"
        "from castsim.targets.tpc_compiler import CType, csv_rows; csv_rows(CType)\n"
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder of descriptions, from which tables are taken."""
    copied = tmp_path / "targets"
    shutil.copytree(validated.CHECKED.parent, copied)
    monkeypatch.setattr(validated, "CHECKED", copied / "checked")
    return copied


@pytest.mark.parametrize("name", ["a5.toml", "a5_casts.csv", "description.py"])
def test_an_edited_file_is_validated_again(name: str, folder: Path) -> None:
    assert validated.checked("a5") is not None
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert validated.checked("a5") is None


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps([]), None])
def test_a_damaged_file_is_not_taken(content: bytes | None, folder: Path) -> None:
    path = folder / "checked" / "a5.pickle"
    if content is None:
        path.write_bytes(path.read_bytes()[:-1000])
    else:
        path.write_bytes(content)
    assert validated.checked("a5") is None
    path.unlink()
    assert validated.checked("a5") is None


def _halved(value: Any) -> Any:
    return value / 2 if isinstance(value, Decimal) else value


def _even(value: int) -> int:
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value


class Inner(Table):
    """A table in another one."""

    size: Annotated[int, Field(gt=0, strict=True), AfterValidator(_even)]
    words: dict[str, int] = Field(default_factory=dict)


class Outer(Table):
    """A table with all kinds of declarations."""

    name: Annotated[str, Field(pattern=r"^[a-z]+$")]
    inner: Inner
    rows: tuple[Inner, ...] = ()
    half: Annotated[Decimal | None, BeforeValidator(_halved), Field(repr=False)] = None
    status: Status = Status.ASSUMED
    hidden: int = Field(default=3, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, values: Any) -> Any:
        return {key: value for key, value in values.items() if value != ""} if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _sizes_differ(self) -> Outer:
        if len({row.size for row in self.rows}) < len(self.rows):
            raise ValueError("two rows are alike")
        return self


class InnerModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    size: Annotated[int, pydantic.Field(gt=0, strict=True), pydantic.AfterValidator(_even)]
    words: dict[str, int] = pydantic.Field(default_factory=dict)


class OuterModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, pydantic.Field(pattern=r"^[a-z]+$")]
    inner: InnerModel
    rows: tuple[InnerModel, ...] = ()
    half: Annotated[Decimal | None, pydantic.BeforeValidator(_halved), pydantic.Field(repr=False)] = None
    status: Status = Status.ASSUMED
    hidden: int = pydantic.Field(default=3, repr=False)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _without_empty(cls, values: Any) -> Any:
        return {key: value for key, value in values.items() if value != ""} if isinstance(values, dict) else values

    @pydantic.model_validator(mode="after")
    def _sizes_differ(self) -> OuterModel:
        if len({row.size for row in self.rows}) < len(self.rows):
            raise ValueError("two rows are alike")
        return self


GOOD: dict[str, Any] = {"name": "a", "inner": {"size": 2}}
VALUES: tuple[object, ...] = (
    GOOD,
    {**GOOD, "rows": [{"size": 4, "words": {"x": 1}}, {"size": 6}], "half": Decimal(3), "status": "fitted"},
    {**GOOD, "hidden": "", "half": "2.5"},
    {**GOOD, "hidden": "5"},
    {**GOOD, "rows": [{"size": 4}, {"size": 4}]},
    {**GOOD, "rows": [{"size": 4}, {"size": 3, "more": 1}, 7]},
    {**GOOD, "rows": 5, "status": "rumoured", "name": "A", "extra": 1},
    {**GOOD, "inner": {"size": "2"}},
    {**GOOD, "inner": {"size": -2}},
    {**GOOD, "inner": 3},
    {"inner": {}},
    {},
    5,
    None,
)


def outcome(model: Any, values: object) -> object:
    """Return what a model makes of values, or the errors that it finds."""
    try:
        made = model.model_validate(values)
    except pydantic.ValidationError as error:
        found = error.errors(include_url=False)
        return [(one["type"], one["loc"], one["msg"].replace("Model", ""), one["input"]) for one in found]
    changed = made.model_copy(update={"hidden": 9})
    texts = [repr(each).replace("Model", "") for each in (made, changed, copy.deepcopy(made))]
    return (
        texts, made.model_dump(), sorted(made.model_fields_set), sorted(changed.model_fields_set), changed == made,
        made == model.model_validate(values), [name for name, field in type(made).model_fields.items() if field.repr],
        [field.is_required() for field in type(made).model_fields.values()],
        [getattr(made, name) == field.default for name, field in type(made).model_fields.items()],
    )  # fmt: skip


@pytest.mark.parametrize("values", VALUES, ids=str)
def test_a_table_takes_and_refuses_what_a_model_does(values: object) -> None:
    assert outcome(Outer, values) == outcome(OuterModel, values)


def test_a_table_cannot_be_changed() -> None:
    table, model = Inner(size=2), InnerModel(size=2)
    for owner in (table, model):
        with pytest.raises(pydantic.ValidationError, match="Instance is frozen"):
            owner.size = 4
        with pytest.raises(pydantic.ValidationError, match="Instance is frozen"):
            del owner.size
        with pytest.raises(pydantic.ValidationError, match="is odd"):
            type(owner)(size=3)
    assert pickle.loads(pickle.dumps(table)) == table
    assert table != Inner(size=4)
    assert hash(Option(**OPTION)) == hash(Option(**OPTION))


OPTION: dict[str, Any] = {"value": 1, "legal": (1, 2), "meaning": "x", "source": "s", "status": "assumed"}


@pytest.mark.parametrize("name", target_names())
def test_limits_of_shipped_descriptions_are_lifted_as_if_checked(name: str) -> None:
    target = load_target(name)
    for limit in target.what_if.values():
        edited = [with_facts(target, limit.set, checked=checked) for checked in (False, True)]
        assert edited[0] == edited[1]
        assert repr(edited[0].model_dump()) == repr(edited[1].model_dump())


def test_an_edited_fact_is_checked() -> None:
    a5 = load_target("a5")
    assert type(a5.frequency) is Frequency
    with pytest.raises(pydantic.ValidationError, match="not among the legal ones"):
        Option.model_validate({**OPTION, "value": 3})
