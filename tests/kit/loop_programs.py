"""Random `.pto` programs of nested loops: branches, remainders, quotients, bits and extremes of their variables."""

from __future__ import annotations

from random import Random

from kit.walker_cases import program, step

WIDE, BASE = 1_000_000, 500_000
"""Rows of the views of programs whose addresses are not cut off, and the row around which they lie."""

NARROW = 128
"""Rows of the views of the others, without the 16 that are loaded from the last one on."""

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
LINEAR = ("addi", "subi", "muli")
BY_CONSTANT = ("divui", "divsi", "remui", "remsi", "shrui", "shrsi", "shli", "andi", "ori", "xori")
OF_TWO = ("minsi", "maxsi", "minui", "maxui", "xori", "andi", "select")


class Maker:
    """Writes one program."""

    def __init__(self, seed: int, *, narrow: bool) -> None:
        self.random = Random(seed)
        self.narrow = narrow
        self.count = 0
        self.constants: dict[int, str] = {}

    def text(self) -> str:
        """A nest of one to three loops, with something before and after it."""
        depth = self.random.choice((1, 1, 1, 2, 2, 3))
        body = self.loop([], depth)
        if self.random.random() < 0.3:
            body += self.loop([], 1)
        named = "".join(f"{name} = arith.constant {value} : index\n" for value, name in self.constants.items())
        return program(named + body, rows=NARROW + 16 if self.narrow else WIDE)

    def name(self) -> str:
        self.count += 1
        return f"%n{self.count}"

    def constant(self, value: int) -> str:
        return self.constants.setdefault(value, f"%k{len(self.constants)}")

    def loop(self, variables: list[str], depth: int) -> str:
        """A loop of up to 40 trips if it stands alone."""
        most = {1: 40, 2: 9, 3: 4}[depth + len(variables)]
        trips, by = self.random.randint(0, most), self.random.choice((1, 1, 1, 2, 3, 16))
        low = self.random.choice((0, 0, 0, 1, 5, -7))
        high = self.constant(low + trips * by - self.random.randrange(by))
        if variables and self.random.random() < 0.15:
            low, high = 0, variables[-1]
        variable = self.name()
        body = self.body([*variables, variable], depth - 1)
        return f"scf.for {variable} = {self.constant(low)} to {high} step {self.constant(by)} {{\n{body}}}\n"

    def body(self, variables: list[str], depth: int, branches: int = 2) -> str:
        """Casts, branches and, if wanted, a loop."""
        parts = [self.cast(variables) for _ in range(self.random.randint(0 if depth else 1, 2))]
        if depth:
            parts.append(self.loop(variables, depth))
        if branches and self.random.random() < 0.6:
            parts.append(self.branch(variables, branches - 1))
        self.random.shuffle(parts)
        return "".join(parts)

    def branch(self, variables: list[str], branches: int) -> str:
        text, condition = self.comparison(variables)
        text += f"scf.if {condition} {{\n{self.body(variables, 0, branches)}}}"
        if self.random.random() < 0.5:
            text += f" else {{\n{self.body(variables, 0, branches)}}}"
        return text + "\n"

    def comparison(self, variables: list[str]) -> tuple[str, str]:
        before, left = self.value(variables, 2)
        more, right = self.value(variables, self.random.choice((0, 0, 1)))
        name = self.name()
        predicate = self.random.choice(PREDICATES)
        return f"{before}{more}{name} = arith.cmpi {predicate}, {left}, {right} : index\n", name

    def cast(self, variables: list[str]) -> str:
        """Load, convert and store 16 rows."""
        text, value = self.value(variables, 3)
        row = self.name()
        if self.narrow:
            above = self.name()
            text += f"{above} = arith.maxsi {value}, {self.constant(0)} : index\n"
            text += f"{row} = arith.minsi {above}, {self.constant(NARROW)} : index\n"
        else:
            text += f"{row} = arith.addi {value}, {self.constant(BASE)} : index\n"
        # Names are unique in a function.
        return text + step(row).replace("%px", self.name()).replace("%py", self.name())

    def value(self, variables: list[str], depth: int) -> tuple[str, str]:
        """Text that computes a value, and its name."""
        random = self.random
        if depth == 0 or random.random() < 0.15:
            chosen = random.choice(variables) if random.random() < 0.75 else self.constant(random.randint(-3, 40))
            return "", chosen
        kind, name = random.random(), self.name()
        text, left = self.value(variables, depth - 1)
        if kind < 0.4:
            more, right = self.value(variables, depth - 1)
            text += f"{more}{name} = arith.{random.choice(LINEAR)} {left}, {right} : index\n"
        elif kind < 0.75:
            other = self.constant(random.choice((1, 2, 3, 4, 5, 6, 7, 8, 12)))
            text += f"{name} = arith.{random.choice(BY_CONSTANT)} {left}, {other} : index\n"
        elif kind < 0.92:
            text += self.of_two(variables, depth, name, left)
        else:
            narrow = self.name()
            text += f"{narrow} = arith.index_cast {left} : index to i8\n"
            text += f"{name} = arith.{random.choice(('index_cast', 'index_castui'))} {narrow} : i8 to index\n"
        return text, name

    def of_two(self, variables: list[str], depth: int, name: str, left: str) -> str:
        more, right = self.value(variables, depth - 1)
        operation = self.random.choice(OF_TWO)
        if operation != "select":
            return f"{more}{name} = arith.{operation} {left}, {right} : index\n"
        compared, condition = self.comparison(variables)
        return f"{more}{compared}{name} = arith.select {condition}, {left}, {right} : index\n"
