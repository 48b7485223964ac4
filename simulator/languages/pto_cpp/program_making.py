"""Conversion of a kernel's recording to a `.pto` program: each line gives nodes of `castsim.isa.pto.program`.

Facts on transfers and on operands that the library accepts: docs/languages/pto_cpp.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, ReadError, TileError, WarningKind
from castsim.isa.formats import Saturation
from castsim.isa.pto import program as pto
from castsim.isa.pto.statement_forms import form_of, variant_of
from castsim.isa.pto.value_types import element_format
from castsim.isa.pto.vector_operations import COMPARISONS, PATTERNS, VECTOR_OPERATIONS, Kind, VectorOperation
from castsim.languages.cpp_recording.node_making import INDEX, NodeMaker
from castsim.languages.cpp_recording.scopes import ScopeMaker

_I64 = pto.ScalarType("i64")
_LARGEST_PAD = 3
_CAST = "TCVT(dst, src[, tmp], RoundMode[, SaturationMode])"
_QUANTISED = ("MXFP8", "MXFP4_E2M1", "INT8_SYM", "INT8_ASYM")
"""QuantType."""
_NARROW = 2
"""The first MxQuantAlg of MXFP4; of two neighbours the second has NVIDIA's rule."""
_BY_POINTER = 3
_JOINED = 2
_FORMS = {
    "tload": "tg", "tstore": "gt", "tcvt": "ttt?", "tgather": "tt|tttt?|ttstt", "tquant": "ttt?t?(&t+)?",
    "tsetval": "tis", "textract": "tt(ii)?", "tinsert": "tt(ii)?", "tpartargmax": "t{6}", "tpartargmin": "t{6}",
    "tinterleave": "t{4}", "tdeinterleave": "t{3,4}", "tadddeqrelu": "ttt(ts?|st?)",
}  # fmt: skip
"""Operands as they are sent: tiles, scalars, indices, global tensors, tiles by pointer."""


_SECOND_RESULT = {"tinterleave": 0, "tdeinterleave": 0, "tpartargmax": 2, "tpartargmin": 2}
"""The position of the second of two results after the first."""


def _boolean(number: str) -> str:
    return "true" if number == "1" else "false"


_ATTRIBUTES: Mapping[str, Callable[[str], str]] = {
    "cmpMode": lambda number: f"#pto<cmp {COMPARISONS[int(number)]}>",
    "maskPattern": lambda number: f"#pto.mask_pattern<{PATTERNS[int(number) - 1]}>",
    "offset": lambda number: f"{number} : i32", "quant_type": lambda word: f"#pto<quant_type {word}>",
    "quantScaleAlg": lambda word: f"#pto<quant_scale_alg {word}>",
    "grpAxis": lambda number: f"#pto<mx_group_axis axis{number}>", "isBinary": str, "descending": _boolean,
    "interleave": _boolean,
}  # fmt: skip
"""Attributes in `.pto` spelling for those in the recording."""


@dataclass(frozen=True, slots=True)
class SentTile:
    """A tile in the recording: `number` identifies the C++ object, an `address` of -1 is none.

    `rows` and `cols` are the current valid extents; `dynamic`: its type leaves one of them open.
    """

    number: int
    address: int
    type: pto.TileType
    rows: int
    cols: int
    dynamic: bool

    @classmethod
    def of(cls, text: str) -> SentTile:
        """Read `t,NUMBER,ADDRESS,...`."""
        parts = text.split(",")
        number, address, rows, cols, valid_rows, valid_cols, fractal, compact, pad, dynamic = map(int, parts[1:11])
        element, location, block, scatter = parts[11:]
        kind = pto.TileType(
            location, element, rows, cols, valid_rows, valid_cols, block, scatter, fractal, pad, compact
        )
        return cls(number, address, kind, valid_rows, valid_cols, bool(dynamic))


@dataclass(frozen=True, slots=True)
class SentGlobal:
    """A global tensor in the recording: byte offset from the pointer of an argument, shape and strides in elements."""

    buffer: int
    offset: int
    element: str
    layout: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> SentGlobal:
        """Read `g,BUFFER,OFFSET,...`."""
        parts = text.split(",")
        numbers = tuple(map(int, parts[5:]))
        return cls(int(parts[1]), int(parts[2]), parts[3], parts[4], numbers[:5], numbers[5:])


@dataclass(slots=True)
class Maker(NodeMaker):
    """Makes the nodes of one function of tile operations."""

    addressed: bool | None = None
    """Whether tiles have addresses; None until one is met."""
    _regions: dict[int, tuple[int, int]] = field(default_factory=dict)
    _scopes: ScopeMaker = field(init=False)

    def __post_init__(self) -> None:
        NodeMaker.__post_init__(self)
        self._scopes = ScopeMaker(self, self.body.append)

    def take(self, line: str) -> None:
        """Record one line of the protocol that is not a question."""
        if not self._scopes.takes(line):
            NodeMaker.take(self, line)

    def function(self, name: str, used: Sequence[int]) -> pto.Function:
        """Return the function of what was taken in."""
        self._scopes.close()
        return NodeMaker.function(self, name, used)

    def work(self, kind: str, rest: list[str]) -> None:
        """Record an operation on tiles, or a read of one of their elements."""
        if kind == "o":
            self._operation(rest[0], rest[1:])
        elif kind == "q":
            tile = self._tile(SentTile.of(rest[0]))
            element = self.scalar_type(tile[1].element)
            self.append(pto.ScalarAccess, "tgetval", *tile, self.index(int(rest[1])), self.name(), element)

    @staticmethod
    def stored(line: str) -> int | None:
        """Return the position of the argument that a line stores to, if it does."""
        words = line.split(" ")
        return int(words[3].split(",")[1]) if words[0] == "o" and words[2] == "tstore" else None

    @staticmethod
    def asked(words: list[str]) -> tuple[int, int, str]:
        """Return address and bytes of the element that a question is for, and what messages call it."""
        sent = SentTile.of(words[0])
        size = element_format(sent.type.element).storage_bits // 8
        address = sent.address + int(words[1]) * size if sent.address >= 0 else -1
        return address, size, f"GetValue({int(words[1])})"

    # ---------------------------------------------------------------------------------------------- operations

    def _operation(self, mnemonic: str, words: list[str]) -> None:
        bar = words.index("|") if "|" in words else len(words)
        outputs, inputs = words[:bar], [word for word in words[bar + 1 :] if word[0] != "a"]
        attributes = dict(word.split(",")[1:] for word in words if word[0] == "a")
        form = _FORMS.get(mnemonic, "t[tsi]*" if mnemonic in VECTOR_OPERATIONS else ".*")
        if re.fullmatch(form, "".join(word[0] for word in outputs + inputs)) is None:
            raise self._unwritten(mnemonic)
        if mnemonic not in ("tload", "tstore") and any(word[0] == "g" for word in outputs):
            text = f"{mnemonic.upper()} stores to global memory by indices, which castsim does not model"
            raise IllegalError(text, span=self.span, legal=("TSTORE(global, tile)",))
        if mnemonic in ("tload", "tstore"):
            if attributes.get("atomic", "0") != "0":
                raise IllegalError("castsim does not model atomic adds by TSTORE", span=self.span)
            self._transfer(mnemonic, outputs[0], inputs[0])
        elif mnemonic == "tcvt":
            self._cast(outputs[0], inputs, attributes)
        elif mnemonic == "tsetval":
            self._set_element(words)
        elif mnemonic == "tquant":
            self._work(*self._quantised(outputs, inputs, attributes))
        elif mnemonic == "tgather" and "maskPattern" not in attributes:
            self._gather(outputs, inputs, attributes)
        else:
            self._work(mnemonic, outputs, inputs, attributes)

    def _unwritten(self, mnemonic: str, legal: Sequence[str] = ()) -> IllegalError:
        return IllegalError(f"{mnemonic.upper()} does not take these operands", span=self.span, legal=legal)

    def _gather(self, outputs: list[str], inputs: list[str], attributes: dict[str, str]) -> None:
        if len(inputs) < _JOINED:
            raise self._unwritten("tgather")
        if inputs[1][0] != "s":  # of numbers of elements the library looks at the width alone
            self._work("tgather", outputs, [inputs[0], *(word.replace(",u", ",i") for word in inputs[1:])], {})
            return
        source, value, counts, tmp = inputs
        words = {"cmpMode": "0", "offset": "0"} | attributes
        self._work("tgather.compare", [*outputs, counts], [source, value, tmp], words)

    def _quantised(
        self, outputs: list[str], inputs: list[str], attributes: dict[str, str]
    ) -> tuple[str, list[str], list[str], dict[str, str]]:
        """Return a TQUANT as its operation in `.pto`: operands that are given by pointer are preceded by `&`."""
        bar = inputs.index("&") if "&" in inputs else len(inputs)
        given, pointed = inputs[:bar], inputs[bar + 1 :]
        algorithm, kind = int(attributes.get("algorithm", -1)), int(attributes.get("kind", 0))
        bytes_alone = "kind" in attributes and kind >= _QUANTISED.index("INT8_SYM")
        narrow = _QUANTISED[kind] == "MXFP4_E2M1" or algorithm >= _NARROW
        wrong = None
        if algorithm > _NARROW + 1:
            wrong = "to HiF4 is not in the A5's library"
        elif not bytes_alone and len(pointed) != _BY_POINTER:
            wrong = "of a scale tile is to INT8_SYM or INT8_ASYM; MXFP8 takes pointers to three tiles"
        elif bytes_alone and (len(pointed) > 1 or len(given) < _JOINED):
            wrong = "to bytes takes a scale tile, not pointers to three tiles"
        elif bytes_alone and bool(pointed) != (_QUANTISED[kind] == "INT8_ASYM"):
            wrong = f"to {_QUANTISED[kind]} {'has no' if pointed else 'needs an'} offset"
        elif not bytes_alone and narrow != (SentTile.of(outputs[0]).type.element == "e2m1"):
            wrong = "to MXFP4_E2M1 writes tiles of float4_e2m1x2_t" if narrow else "to MXFP8 writes bytes"
        if wrong:
            raise IllegalError(f"TQUANT {wrong}", span=self.span)
        if bytes_alone:
            source, scale, *tmp = given
            return "tquant", [*outputs, *tmp], [source, scale, *pointed], {"quant_type": _QUANTISED[kind]}
        return "tquant.mx", [*outputs, *pointed], given, {
            "quant_type": "MXFP4_E2M1" if narrow else "MXFP8",
            "quantScaleAlg": "nv" if attributes.get("rule") == "1" or (algorithm > 0 and algorithm % 2) else "ocp",
            "grpAxis": attributes.get("grpAxis", "1"), "interleave": attributes.get("interleave", "0")
        }  # fmt: skip

    def _work(self, mnemonic: str, outputs: list[str], inputs: list[str], attributes: dict[str, str]) -> None:
        if mnemonic in ("textract", "tinsert"):
            inputs = inputs if len(inputs) > 1 else [*inputs, "i,0", "i,0"]
        elif mnemonic == "tci":
            attributes.setdefault("descending", "0")
        elif mnemonic == "tconcat" and len(inputs) > _JOINED:
            mnemonic = "tconcatidx"
        elif mnemonic in _SECOND_RESULT:
            second = _SECOND_RESULT[mnemonic]
            outputs, inputs = [*outputs, inputs[second]], inputs[:second] + inputs[second + 1 :]
        elif mnemonic == "tadddeqrelu":  # its tmp tile has no use
            inputs = [*inputs[:2], *(word for word in inputs if word[0] == "s")]
        elif mnemonic not in VECTOR_OPERATIONS:  # refused by name, or given cycles: its tiles are enough
            inputs, attributes = [word for word in inputs if word[0] == "t"], {}
        operation = VECTOR_OPERATIONS.get(mnemonic)
        if operation is not None and operation.tmp_like_source and len(inputs) == _JOINED:
            inputs = [inputs[0], _over(inputs[1], inputs[0])]
        names, kinds = self._operands(inputs)
        if "maskPattern" in attributes:
            mnemonic += ".mask"
        elif mnemonic == "tmov":
            mnemonic = variant_of(mnemonic, {}, kinds, [SentTile.of(word).type for word in outputs])
        operation = VECTOR_OPERATIONS.get(mnemonic)
        if operation is not None:
            names, kinds = self._needed(operation, names, kinds)
        results = [self._tile(SentTile.of(word)) for word in outputs]
        attribute_pairs = sorted((key, _ATTRIBUTES[key](value)) for key, value in attributes.items())
        self.append(
            pto.TileOperation, mnemonic, tuple(names), tuple(kinds), tuple(name for name, _ in results),
            tuple(kind for _, kind in results), tuple(attribute_pairs)
        )  # fmt: skip

    def _needed(
        self, operation: VectorOperation, names: list[str], kinds: list[pto.Type]
    ) -> tuple[list[str], list[pto.Type]]:
        """Return operands without a tmp tile that the operation has no use for, as row broadcasts on the A5.

        Raises:
            IllegalError: it is not written with such operands.
        """
        spared = self.a5 and operation.kind is Kind.ROW_BROADCAST and len(kinds) > _JOINED
        if spared or (form_of(operation, kinds) is None and form_of(operation, kinds[:-1]) is not None):
            names, kinds = names[:-1], kinds[:-1]
        if form_of(operation, kinds) is None:
            raise self._unwritten(operation.mnemonic, operation.spellings)
        return names, kinds

    def _operands(self, words: list[str]) -> tuple[list[str], list[pto.Type]]:
        names: list[str] = []
        kinds: list[pto.Type] = []
        for word in words:
            if word[0] == "t":
                name, kind = self._tile(SentTile.of(word))
                names.append(name)
                kinds.append(kind)
            elif word[0] == "i":
                names.append(self.index(int(word[2:])))
                kinds.append(INDEX)
            else:
                _, element, code = word.split(",")
                signless = element.replace("u", "i") if element[0] == "u" else element
                kinds.append(self.scalar_type(signless))
                names.append(self.code(int(code, 16), signless))
        return names, kinds

    def _cast(self, output: str, inputs: list[str], attributes: dict[str, str]) -> None:
        tiles = [SentTile.of(word) for word in (output, *inputs)]
        if "rmode" not in attributes:
            raise self._unwritten("tcvt", (_CAST,))
        dst, src, *tmp = map(self._tile, _alike(tiles))
        saturation = Saturation[attributes["sat"]] if "sat" in attributes else None
        name, kind = tmp[0] if tmp else (None, None)
        rounding = pto.RoundMode[attributes["rmode"]]
        self.append(pto.Tcvt, dst[0], src[0], dst[1], src[1], name, kind, rounding, saturation)

    def _set_element(self, words: list[str]) -> None:
        name, kind = self._tile(SentTile.of(words[0]))
        element = kind.element.replace("u", "i") if kind.element[0] == "u" else kind.element
        value = self.code(int(words[2].split(",")[2], 16), element)
        self.append(
            pto.ScalarAccess, "tsetval", name, kind, self.index(int(words[1][2:])), value, self.scalar_type(element)
        )

    # ----------------------------------------------------------------------------------------------- transfers

    def _transfer(self, mnemonic: str, output: str, given: str) -> None:
        ends = (output, given) if mnemonic == "tload" else (given, output)
        sent, view = SentTile.of(ends[0]), SentGlobal.of(ends[1])
        if view.layout not in ("nd", "dn"):
            raise IllegalError(
                f"{mnemonic.upper()} of layout {view.layout.upper()}: only the cube unit supports it", span=self.span
            )
        by_column = view.layout == "dn"
        shape, strides = self._moved(sent, view, by_column=by_column)
        if 0 in shape:
            return
        tile, part = self._tile(sent), self._part(view, shape, strides)
        pairs = (part, tile) if mnemonic == "tload" else (tile, part)
        (first, first_type), (second, second_type) = pairs
        self.append(pto.TileOperation, mnemonic, (first,), (first_type,), (second,), (second_type,))

    def _moved(self, tile: SentTile, view: SentGlobal, *, by_column: bool) -> tuple[list[int], list[int]]:
        """Return shape and strides of the library's transfer: bursts of the tile's valid extent, whatever the view is.

        On A2/A3 the gap between bursts is programmed, so bursts begin elsewhere if the extents differ.
        """
        shape, strides = list(view.shape), list(view.strides)
        burst, along, outer = (tile.rows, 3, 4) if by_column else (tile.cols, 4, 3)
        if min(shape) < 0:
            raise TileError(f"a global tensor of shape {shape}", span=self.span)
        if burst == 0 or 0 in shape:
            return [0], [1]
        if shape[along] != burst:
            if shape[outer] > 1:
                if not self.a5:
                    strides[outer] = burst + strides[outer] - shape[along]
                what = "columns" if not by_column else "rows"
                moved = f"bursts are {strides[outer]} elements apart" if not self.a5 else "as many are moved"
                self.warn(
                    WarningKind.REGION,
                    f"{burst} valid {what} of the tile, {shape[along]} of the global tensor: {moved}",
                )
            shape[along] = burst
        if strides[outer] < 0:
            raise TileError(f"bursts that are {strides[outer]} elements apart", span=self.span)
        for axis, extent in enumerate(shape):
            if extent == 1 and strides[axis] < 1:
                strides[axis] = 1
        first = next((index for index in range(3) if shape[index] > 1), 3)
        return shape[first:], strides[first:]

    def _part(self, view: SentGlobal, shape: list[int], strides: list[int]) -> tuple[str, pto.PartitionType]:
        name = self.names[view.buffer]
        element = self.elements.setdefault(view.buffer, view.element)
        if element != view.element:
            raise ReadError(
                f"{name} is used as {element} and as {view.element}; arguments have one type", span=self.span
            )
        bits = element_format(view.element).bits
        bits = bits if bits < 8 else element_format(view.element).storage_bits
        if view.offset < 0:
            raise TileError(f"accesses memory {-view.offset} bytes before {name}", span=self.span)
        if view.offset * 8 % bits:
            raise TileError(f"{name}: byte {view.offset} is inside an element of {view.element}", span=self.span)
        offset = view.offset * 8 // bits
        self.check_end(view.buffer, offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
        key = (view.buffer, offset, tuple(shape), tuple(strides), view.layout)
        dims = tuple(shape)
        kind = pto.PartitionType(dims, view.element)
        if key not in self.defined:
            pointer = name
            if offset:
                pointer = self.once(
                    (view.buffer, offset), lambda at: pto.AddPointer(
                        at, name, self.index(offset), pto.PointerType(view.element), span=self.span)
                )  # fmt: skip
            open_type = pto.ViewType((None,) * len(dims), view.element)
            whole = self.name()
            extents = tuple(map(self.index, shape))
            self.append(pto.MakeView, whole, pointer, extents, tuple(map(self.index, strides)), view.layout, open_type)
            part = self.name()
            zeros = (self.index(0),) * len(dims)
            self.append(pto.PartitionView, part, whole, zeros, extents, open_type, kind)
            self.defined[key] = part
        return self.defined[key], kind

    # ------------------------------------------------------------------------------------------------- operands

    def _tile(self, sent: SentTile) -> tuple[str, pto.TileType]:
        """Return a tile of the program for one in the recording.

        The library compares valid regions of tiles with open extents at run time, if at all, so the type has none.
        """
        kind = self._within(sent)
        self._check_tile(sent)
        address = self.constant(sent.address, _I64) if self.addressed else None
        key = (sent.address if self.addressed else -sent.number, kind, sent.dynamic)
        if not sent.dynamic and (sent.rows, sent.cols) == (kind.rows, kind.cols):
            return self.once(key, lambda name: pto.AllocTile(name, kind, address, span=self.span)), kind
        kind = replace(kind, valid_rows=None, valid_cols=None)
        rows, cols = self.index(sent.rows), self.index(sent.cols)
        return self.once(key, lambda name: pto.AllocTile(name, kind, address, rows, cols, span=self.span)), kind

    def _check_tile(self, sent: SentTile) -> None:
        location, placed = sent.type.location, sent.address >= 0
        if location != "vec":
            text = f"a tile of '{location}': only the cube unit supports it; castsim runs vector kernels"
            raise IllegalError(text, span=self.span)
        if sent.type.pad > _LARGEST_PAD:
            raise IllegalError("custom pad values are not modelled", span=self.span)
        if self.addressed is None:
            self.addressed = placed
        if self.addressed != placed:
            text = "a tile without an address, although other tiles have one"
            raise ReadError(text, span=self.span, legal=("TASSIGN(tile, ADDRESS)",))
        if not placed and self._regions.setdefault(sent.number, (sent.rows, sent.cols)) != (sent.rows, sent.cols):
            raise ReadError("a tile without an address changes its valid region", span=self.span)

    def _within(self, sent: SentTile) -> pto.TileType:
        """Return a tile's type; one that is declared larger than the buffer has only the valid lines."""
        kind, fmt = sent.type, element_format(sent.type.element)
        bits = 4 if fmt.bits == 4 else fmt.storage_bits
        if sent.address + kind.rows * kind.cols * bits // 8 <= self.capacity:
            return kind
        if kind.block_layout == "row_major":
            return replace(kind, rows=max(sent.rows, 1))
        return replace(kind, cols=max(sent.cols, 1))

    def append(self, kind: Callable[..., pto.Operation], *fields: object) -> None:
        """Add a node; flags are inserted one by one where tiles have no addresses."""
        if self.addressed is False:
            self.body.append(kind(*fields, span=self.span))
        else:
            NodeMaker.append(self, kind, *fields)


def _over(tmp: str, source: str) -> str:
    """Return a tmp tile with the valid region of the source, where it has room: the library compares none."""
    words, (rows, cols) = tmp.split(","), source.split(",")[5:7]
    if all(int(extent) <= int(room) for extent, room in zip((rows, cols), words[3:5], strict=True)):
        words[5:7] = rows, cols
    return ",".join(words)


def _alike(tiles: list[SentTile]) -> list[SentTile]:
    """Return the tiles of a cast with the same physical shape if that changes no byte: the library compares none.

    The number of rows does not affect the place of an element, nor does the pitch of a single row.
    """
    dst, src, *tmp = tiles
    if dst.type.block_layout != "row_major" or src.type.block_layout != "row_major":
        return tiles
    rows, valid = max(dst.rows, src.rows, 1), max(dst.cols, src.cols, 1)
    changed = []
    for tile in (dst, src):
        kind = replace(tile.type, rows=rows)
        if rows == 1 and dst.type.cols != src.type.cols:
            kind = replace(kind, cols=-(-valid // _COLUMNS) * _COLUMNS)
        changed.append(replace(tile, type=kind))
    return [*changed, *tmp]


_COLUMNS = 64
"""Number of columns for which every format fills whole blocks."""
