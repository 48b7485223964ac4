"""Programs to canonical text: what the vendor's disassembler prints.

Lower-case mnemonics, switches before the operands, registers in upper case, immediates as unsigned hexadecimal
numbers of 32 bits, no predicate SP0. Reading the printed text gives an equal program. Source: docs/reference/tpc.md
section 7.
"""

from __future__ import annotations

from castsim.isa.tpc.dialect import Dialect
from castsim.isa.tpc.forms import SELECTORS, OperandSpec, Show
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import (
    Bundle,
    Declaration,
    Immediate,
    Item,
    LabelDefinition,
    Operand,
    RegisterDeclaration,
    TableDeclaration,
    TargetDeclaration,
    TensorDeclaration,
    TpcInstruction,
    TpcProgram,
)


def print_instruction(instruction: TpcInstruction | None) -> str:
    """Write one instruction; None is `nop`."""
    if instruction is None:
        return "nop"
    form = instruction.form
    head = form.mnemonic if instruction.type is None else f"{form.mnemonic}.{instruction.type}"
    specs = {switch.name: switch for switch in form.switches}
    words = [head]
    for name, value in instruction.switches:
        switch = specs[name]
        if switch.show is Show.ALWAYS or (switch.show is Show.CHANGED and value != switch.default):
            words.append(switch.print(value))
    operands = [_operand(spec, found) for spec, found in zip(form.operands, instruction.operands, strict=True)]
    if form.operands and form.operands[0].role in SELECTORS:
        words.append(operands.pop(0))
    if instruction.predicate is not None:
        operands.append(str(instruction.predicate))
    if operands:
        words.append(", ".join(operands))
    return " ".join(words)


def print_bundle(bundle: Bundle) -> str:
    """Write one bundle: four slots in order, separated by `;`."""
    return "; ".join(print_instruction(instruction) for instruction in bundle.slots)


def print_program(program: TpcProgram) -> str:
    """Write a program: declarations first, then a line per bundle, label and directive."""
    lines = [print_declaration(declaration) for declaration in program.declarations]
    lines.extend(_item(item) for item in program.items)
    return "".join(f"{line}\n" for line in lines)


def canonical_text(text: str, dialect: Dialect, file: str = "<text>") -> str:
    """Rewrite a text canonically, one line per input line.

    A bundle in braces stands in the line of its opening brace; the lines that it or a comment leaves empty stay
    empty. Declarations are kept. The result ends in a line break if the text does.

    Raises:
        ReadError, IllegalError: as `castsim.isa.tpc.parser.parse`.
    """
    program = parse(text, dialect, file)
    lines: list[list[str]] = [[] for _ in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    for item in program.items:
        lines[item.span.line - 1].append(_item(item))
    for declaration in program.declarations:
        lines[declaration.span.line - 1].append(print_declaration(declaration))
    return "\n".join(" ".join(parts) for parts in lines)


def print_declaration(declaration: Declaration) -> str:
    """Write a declaration as the comment it is."""
    return f"// castsim: {_declared(declaration)}"


def _declared(declaration: Declaration) -> str:
    if isinstance(declaration, TargetDeclaration):
        return f"target {declaration.name}"
    if isinstance(declaration, RegisterDeclaration):
        shown = ", ".join(map(str, declaration.values))
        return f"reg {declaration.register} = {shown if len(declaration.values) == 1 else f'[{shown}]'}"
    shape = ", ".join(map(str, declaration.shape))
    if isinstance(declaration, TableDeclaration):
        which = f"lut_ptr {declaration.function}" if declaration.by_pointer else str(declaration.function)
        content = "" if declaration.content is None else f" = {declaration.content}"
        return f"table {declaration.name} {which} {declaration.format} [{shape}]{content}"
    if isinstance(declaration, TensorDeclaration):
        head = f"tensor {declaration.number} {declaration.name} {declaration.direction}"
    else:
        direction = "" if declaration.direction == "in" else f" {declaration.direction}"
        head = f"vlm {declaration.address:#x} {declaration.name}{direction}"
    return f"{head} {declaration.format} [{shape}]"


def _item(item: Item) -> str:
    if isinstance(item, Bundle):
        return print_bundle(item)
    return f"{item.name}:" if isinstance(item, LabelDefinition) else item.text


def _operand(spec: OperandSpec, operand: Operand) -> str:
    if isinstance(operand, Immediate):
        return str(operand.signed) if spec.decimal else f"{operand.value:#x}"
    return str(operand)
