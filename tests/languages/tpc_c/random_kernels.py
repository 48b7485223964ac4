"""Random kernels in C, and what C says that they compute: a generator of trees, their text, a direct interpreter.

Nothing here knows of instructions. Numbers are Python integers wrapped to their types, or arrays of NumPy.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

LANES = 64
BITS = {"int": 32, "unsigned": 32, "short": 16, "unsigned char": 8}
ARRAYS = {"int64": np.int32, "uint64": np.uint32, "float64": np.float32}
Env = dict[str, object]
Run = Callable[[Env], object]


class Break(Exception):  # noqa: N818
    pass


class Continue(Exception):  # noqa: N818
    pass


def wrapped(number: int, kind: str) -> int:
    number &= (1 << BITS[kind]) - 1
    return number - (1 << BITS[kind]) if "unsigned" not in kind and number >> (BITS[kind] - 1) else number


@dataclass(frozen=True)
class Node:
    """An expression: its text, its type, how it is evaluated."""

    text: str
    kind: str
    run: Run


@dataclass
class Generator:
    """Draws one kernel."""

    seed: int
    lines: list[str] = field(default_factory=list)
    loops: int = 0
    pragmas: bool = True

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.scalars = {"a": "int", "b": "int", "c": "unsigned", "d": "short", "e": "unsigned char"}
        self.vectors = {"v": "int64", "w": "int64", "u": "uint64", "f": "float64", "g": "float64"}
        self.counters: list[str] = []

    # ------------------------------------------------------------------------------------------------- expressions

    def scalar(self, depth: int) -> Node:
        pick = self.random.random()
        if depth == 0 or pick < 0.2:
            if self.random.random() < 0.35:
                number = self.random.choice([0, 1, 2, 3, 7, 64, 255, 1000, 65535, 2147483647])
                return Node(str(number), "int", lambda env: number)
            names = [*self.scalars, *self.counters]
            name = self.random.choice(names)
            return Node(name, self.scalars.get(name, "int"), lambda env: env[name])
        if pick < 0.3:
            sign = self.random.choice("-~!")
            one = self.scalar(depth - 1)
            kind = "int" if sign == "!" or one.kind != "unsigned" else "unsigned"
            apply = {"-": lambda x: -x, "~": lambda x: ~x, "!": lambda x: int(not x)}[sign]
            return Node(f"({sign}{one.text})", kind, lambda env: wrapped(apply(one.run(env)), kind))
        if pick < 0.4:
            test, one, two = (self.scalar(depth - 1) for _ in range(3))
            kind = self.meeting(one, two)
            return Node(f"({test.text} ? {one.text} : {two.text})", kind,
                        lambda env: wrapped(one.run(env) if test.run(env) else two.run(env), kind))  # fmt: skip
        if pick < 0.5:
            sign = self.random.choice(["&&", "||"])
            one, two = self.scalar(depth - 1), self.scalar(depth - 1)
            if sign == "&&":
                return Node(f"({one.text} && {two.text})", "int", lambda env: int(bool(one.run(env) and two.run(env))))
            return Node(f"({one.text} || {two.text})", "int", lambda env: int(bool(one.run(env) or two.run(env))))
        if pick < 0.6:
            sign = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
            one, two = self.scalar(depth - 1), self.scalar(depth - 1)
            kind = self.meeting(one, two)
            test = {"<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y,
                    ">=": lambda x, y: x >= y, "==": lambda x, y: x == y, "!=": lambda x, y: x != y}[sign]  # fmt: skip
            return Node(f"({one.text} {sign} {two.text})", "int",
                        lambda env: int(test(wrapped(one.run(env), kind), wrapped(two.run(env), kind))))  # fmt: skip
        return self.computed(depth)

    def computed(self, depth: int) -> Node:
        sign = self.random.choice(["+", "-", "*", "&", "|", "^", "<<", ">>", "/", "%"])
        one, two = self.scalar(depth - 1), self.scalar(depth - 1)
        if sign in ("<<", ">>"):
            kind = "unsigned" if one.kind == "unsigned" else "int"
            count = self.random.randrange(32)
            shift = (lambda x: x << count) if sign == "<<" else (lambda x: x >> count)
            return Node(
                f"({one.text} {sign} {count})", kind, lambda env: wrapped(shift(wrapped(one.run(env), kind)), kind)
            )
        kind = self.meeting(one, two)
        if sign in ("/", "%"):
            divisor = self.random.choice([1, 2, 3, 8, 64, 100, 641])

            def divided(env: Env) -> int:
                x = wrapped(one.run(env), kind1)
                quotient = abs(x) // divisor * (-1 if x < 0 else 1)
                return quotient if sign == "/" else x - quotient * divisor

            kind1 = "unsigned" if one.kind == "unsigned" else "int"
            return Node(f"({one.text} {sign} {divisor})", kind1, divided)
        apply = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "&": lambda x, y: x & y,
                 "|": lambda x, y: x | y, "^": lambda x, y: x ^ y}[sign]  # fmt: skip
        return Node(f"({one.text} {sign} {two.text})", kind,
                    lambda env: wrapped(apply(one.run(env), two.run(env)), kind))  # fmt: skip

    @staticmethod
    def meeting(one: Node, two: Node) -> str:
        return "unsigned" if "unsigned" in (one.kind, two.kind) else "int"

    def vector(self, kind: str, depth: int) -> Node:
        names = [name for name, each in self.vectors.items() if each == kind]
        if depth == 0 or self.random.random() < 0.2:
            name = self.random.choice(names)
            return Node(name, kind, lambda env: env[name])
        dtype, one = ARRAYS[kind], self.vector(kind, depth - 1)
        pick = self.random.random()
        if kind == "float64":
            return self.floats(one, depth)
        word = "i32" if kind == "int64" else "u32"
        two = self.vector(kind, depth - 1)
        if pick < 0.15:
            three, four = self.vector(kind, 0), self.vector(kind, 0)
            return Node(f"v_{word}_sel_less_{word}_b({one.text}, {two.text}, {three.text}, {four.text})", kind,
                        lambda env: np.where(one.run(env) < two.run(env), three.run(env), four.run(env)))  # fmt: skip
        if pick < 0.3:
            other = self.scalar(1)

            def raised(env: Env) -> object:
                return one.run(env) + np.array(other.run(env) & 0xFFFFFFFF, np.uint32).astype(dtype)

            return Node(f"({one.text} + {other.text})", kind, raised)
        if pick < 0.4:
            count = self.random.randrange(32)
            sign = self.random.choice(["<<", ">>"])
            shifted = np.left_shift if sign == "<<" else np.right_shift
            return Node(f"({one.text} {sign} {count})", kind, lambda env: shifted(one.run(env), dtype(count)))
        if pick < 0.5:
            other = "uint64" if kind == "int64" else "int64"
            inner = self.vector(other, depth - 1)
            return Node(f"(({kind}){inner.text})", kind, lambda env: inner.run(env).view(dtype))
        if pick < 0.6:
            sign = self.random.choice("-~")
            return Node(f"({sign}{one.text})", kind,
                        lambda env: dtype(0) - one.run(env) if sign == "-" else ~one.run(env))  # fmt: skip
        sign = self.random.choice("+-*&|^")
        apply = {"+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or,
                 "^": np.bitwise_xor}[sign]  # fmt: skip
        return Node(f"({one.text} {sign} {two.text})", kind, lambda env: apply(one.run(env), two.run(env)))

    def floats(self, one: Node, depth: int) -> Node:
        """Sums, differences and halves of small multiples of a power of two: exact, so that no rounding matters."""
        two = self.vector("float64", depth - 1)
        pick = self.random.random()
        if pick < 0.2:
            return Node(f"v_f32_max_b({one.text}, {two.text})", "float64",
                        lambda env: np.maximum(one.run(env), two.run(env)))  # fmt: skip
        if pick < 0.35:
            return Node(f"v_f32_abs_b({one.text})", "float64", lambda env: np.abs(one.run(env)))
        if pick < 0.5:
            return Node(f"v_f32_mac_b({one.text}, 0.5f, {two.text})", "float64",
                        lambda env: one.run(env) * np.float32(0.5) + two.run(env))  # fmt: skip
        sign = self.random.choice("+-")
        return Node(f"(0.5f * ({one.text} {sign} {two.text}))", "float64",
                    lambda env: np.float32(0.5) * (one.run(env) + two.run(env) if sign == "+"
                                                   else one.run(env) - two.run(env)))  # fmt: skip

    # -------------------------------------------------------------------------------------------------- statements

    def statements(self, count: int, depth: int, inside: bool) -> list[Callable[[Env], None]]:
        return [self.statement(depth, inside) for _ in range(count)]

    def statement(self, depth: int, inside: bool) -> Callable[[Env], None]:
        pick = self.random.random()
        if depth and pick < 0.2:
            return self.branch(depth, inside)
        if depth and pick < 0.35 and self.loops < 6:
            return self.loop(depth)
        if inside and pick < 0.4:
            word = self.random.choice(["break", "continue"])
            test = self.scalar(1)
            self.lines.append(f"if ({test.text} > 100) {word};")

            def leave(env: Env) -> None:
                if wrapped(test.run(env), "unsigned" if test.kind == "unsigned" else "int") > 100:
                    raise Break if word == "break" else Continue

            return leave
        if pick < 0.7:
            return self.assigned(self.random.choice([*self.scalars]))
        return self.vector_assigned(self.random.choice([*self.vectors]))

    def assigned(self, name: str) -> Callable[[Env], None]:
        kind, value = self.scalars[name], self.scalar(2)
        if self.random.random() < 0.3:
            sign = self.random.choice("+-^")
            self.lines.append(f"{name} {sign}= {value.text};")
            apply = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "^": lambda x, y: x ^ y}[sign]
            return lambda env: env.update({name: wrapped(apply(env[name], value.run(env)), kind)})
        self.lines.append(f"{name} = {value.text};")
        return lambda env: env.update({name: wrapped(value.run(env), kind)})

    def vector_assigned(self, name: str) -> Callable[[Env], None]:
        kind = self.vectors[name]
        value = self.vector(kind, 2)
        if kind == "int64" and self.random.random() < 0.3:
            test = self.scalar(1)
            other = self.vector(kind, 1)
            self.lines.append(f"{name} = v_i32_add_b({value.text}, {other.text}, 0, {name}, {test.text} > 3);")

            def added(env: Env) -> None:
                if wrapped(test.run(env), "unsigned" if test.kind == "unsigned" else "int") > 3:
                    env[name] = value.run(env) + other.run(env)

            return added
        self.lines.append(f"{name} = {value.text};")
        return lambda env: env.update({name: value.run(env)})

    def branch(self, depth: int, inside: bool) -> Callable[[Env], None]:
        test = self.scalar(2)
        self.lines.append(f"if ({test.text}) {{")
        first = self.statements(2, depth - 1, inside)
        self.lines.append("} else {")
        second = self.statements(self.random.randrange(2), depth - 1, inside)
        self.lines.append("}")

        def run(env: Env) -> None:
            for each in first if test.run(env) else second:
                each(env)

        return run

    def loop(self, depth: int) -> Callable[[Env], None]:
        self.loops += 1
        name = f"i{self.loops}"
        start, trips, step = self.random.randrange(-3, 4), self.random.randrange(4), self.random.randrange(1, 4)
        down = self.random.random() < 0.3
        bound = start + trips * step * (-1 if down else 1)
        head = f"int {name} = {start}; {name} {'>' if down else '<'} {bound}; {name} {'-=' if down else '+='} {step}"
        if self.pragmas and self.random.random() < 0.5:
            self.lines.append(self.random.choice(["#pragma loop_unroll(2)", "#pragma unroll", "#pragma loop_taken"]))
        self.lines.append(f"for ({head}) {{")
        self.counters.append(name)
        body = self.statements(2, depth - 1, self.random.random() < 0.4)
        self.counters.pop()
        self.lines.append("}")
        numbers = range(start, bound, -step if down else step)

        def run(env: Env) -> None:
            for number in numbers:
                env[name] = number
                try:
                    for each in body:
                        each(env)
                except Continue:
                    continue
                except Break:
                    break

        return run


def kernel(seed: int, pragmas: bool = True) -> tuple[str, Callable[[Env], Env]]:
    """Return the text of a kernel, and what it computes from scalars and vectors."""
    generator = Generator(seed, pragmas=pragmas)
    body = generator.statements(6, 2, inside=False)
    inner = "\n        ".join(generator.lines)
    loads, stores = [], []
    for row, (name, kind) in enumerate(generator.vectors.items()):
        word = {"int64": "i32", "uint64": "u32", "float64": "f32"}[kind]
        tensor = "floats" if kind == "float64" else "numbers"
        loads.append(f"at[1] = {row}; {kind} {name} = v_{word}_ld_tnsr_b(at, {tensor});")
        out = "float_results" if kind == "float64" else "results"
        stores.append(f"at[1] = {row}; v_{word}_st_tnsr(at, {out}, {name});")
    for row, name in enumerate(generator.scalars, start=5):
        stores.append(f"at[1] = {row}; v_i32_st_tnsr(at, results, (int64)(int){name});")
    text = (
        "void main(tensor numbers, tensor floats, tensor results, tensor float_results, int a_in, int b_in) {\n"
        "    int5 at = {0};\n    " + "\n    ".join(loads) + "\n    int a = a_in, b = b_in; unsigned c = a_in ^ 77;\n"
        "    short d = b_in; unsigned char e = a_in;\n        " + inner + "\n    " + "\n    ".join(stores) + "\n}\n"
    )

    def run(env: Env) -> Env:
        env |= {"c": wrapped(env["a"] ^ 77, "unsigned"), "d": wrapped(env["b"], "short"),
                "e": wrapped(env["a"], "unsigned char")}  # type: ignore[operator, arg-type]  # fmt: skip
        with np.errstate(all="ignore"):
            for each in body:
                each(env)
        return env

    return text, run
