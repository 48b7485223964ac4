"""Mutators of bytes and of tokens: what they make is close to something that can be read, and wrong somewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

MOST_BYTES = 1 << 16
"""Longest input that a mutator makes."""

_TOKEN = re.compile(rb"[A-Za-z_!#%@.][\w.]*|\d[\w.]*|\s+|.", re.DOTALL)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_NUMBERS = (
    b"0", b"-1", b"1", b"2", b"7", b"255", b"256", b"65535", b"65536", b"2147483647", b"2147483648", b"-2147483649",
    b"4294967295", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"1e400", b"-0.0", b"nan",
    b"0x7fffffffffffffff", b"1" + b"0" * 50, b"00", b"0x", b"inf", b"1e-400", b"3.5", b"-", b"true",
)  # fmt: skip
_WORDS = (
    b"\x00", b"\xff", b"\xc3\x28", "é".encode(), "\u202e".encode(), b"\x1b[31m", b"\r", b"\t", b"\\", b'"', b"'", b"{",
    b"}", b"(", b")", b"<", b">", b"[", b"]", b"//", b"/*", b",", b":", b"=", b"->", b"%", b"#", b"!", b"@", b"\n",
    b"?",
)  # fmt: skip
_WIDE = tuple(
    value.to_bytes(size, "little", signed=value < 0)
    for size in (1, 2, 4, 8)
    for value in (0, 1, -1, (1 << 8 * size - 1) - 1, -(1 << 8 * size - 1))
)


class Mutator:
    """Changes inputs; `others` are what parts are taken from, `words` tokens to put in."""

    def __init__(self, rng: Random, others: Sequence[bytes], *, text: bool) -> None:
        self.rng = rng
        self.others = others
        self.words = sorted({token for each in others for token in _TOKEN.findall(each[:8192])}) if text else ()
        self.ways: tuple[Callable[[bytes], bytes], ...] = _BYTES if not text else (*_TOKENS, *_TOKENS, *_BYTES)

    def mutated(self, data: bytes) -> bytes:
        for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 4))):
            data = self.rng.choice(self.ways)(self, data)  # type: ignore[call-arg, arg-type]
        return data[:MOST_BYTES]

    def place(self, data: bytes) -> int:
        return self.rng.randrange(len(data) + 1)

    def part(self, data: bytes, most: int = 64) -> tuple[int, int]:
        start = self.place(data)
        return start, min(len(data), start + self.rng.randint(0, most))

    def flip(self, data: bytes) -> bytes:
        if not data:
            return b"\x00"
        at = self.rng.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << self.rng.randrange(8)]) + data[at + 1 :]

    def byte(self, data: bytes) -> bytes:
        at = self.place(data)
        return data[:at] + self.rng.randbytes(1) + data[at + 1 :]

    def word(self, data: bytes) -> bytes:
        at = self.place(data)
        put = self.rng.choice(_WIDE)
        return data[:at] + put + data[at + self.rng.choice((0, len(put))) :]

    def cut(self, data: bytes) -> bytes:
        start, end = self.part(data)
        return data[:start] + data[end:]

    def end(self, data: bytes) -> bytes:
        return data[: self.place(data)]

    def repeat(self, data: bytes) -> bytes:
        start, end = self.part(data)
        return data[:end] + data[start:end] * self.rng.choice((1, 1, 2, 3, 50)) + data[end:]

    def noise(self, data: bytes) -> bytes:
        at = self.place(data)
        return data[:at] + self.rng.randbytes(self.rng.randint(1, 16)) + data[at:]

    def splice(self, data: bytes) -> bytes:
        other = self.rng.choice(self.others)
        start, end = self.part(other, 512)
        at, until = self.part(data)
        return data[:at] + other[start:end] + data[until:]

    def token(self, data: bytes) -> bytes:
        found = list(_TOKEN.finditer(data[:MOST_BYTES]))
        if not found:
            return self.rng.choice(_WORDS)
        one = self.rng.choice(found)
        put = self.rng.choice(_WORDS if self.rng.random() < 0.2 or not self.words else self.words)
        return data[: one.start()] + put + data[one.end() :]

    def swap(self, data: bytes) -> bytes:
        found = [one for one in _TOKEN.finditer(data[:MOST_BYTES]) if not one[0].isspace()]
        if len(found) < 2:
            return data
        one, two = sorted(self.rng.sample(found, 2), key=re.Match.start)
        return data[: one.start()] + two[0] + data[one.end() : two.start()] + one[0] + data[two.end() :]

    def number(self, data: bytes) -> bytes:
        found = list(_NUMBER.finditer(data[:MOST_BYTES]))
        if not found:
            return data
        one = self.rng.choice(found)
        return data[: one.start()] + self.rng.choice(_NUMBERS) + data[one.end() :]

    def line(self, data: bytes) -> bytes:
        """Move, repeat or drop a line, or put one of another input in."""
        lines = data.split(b"\n")
        at = self.rng.randrange(len(lines))
        match self.rng.randrange(4):
            case 0:
                del lines[at]
            case 1:
                lines.insert(self.rng.randrange(len(lines) + 1), lines[at])
            case 2:
                lines.insert(at, self.rng.choice(self.rng.choice(self.others).split(b"\n")))
            case _:
                other = self.rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
        return b"\n".join(lines)

    def nest(self, data: bytes) -> bytes:
        at, deep = self.place(data), self.rng.choice((1, 2, 30, 300, 3000))
        opening, closing = self.rng.choice(((b"{", b"}"), (b"(", b")"), (b"<", b">"), (b"[", b"]")))
        return data[:at] + opening * deep + (closing * deep if self.rng.random() < 0.7 else b"") + data[at:]


_BYTES = (
    Mutator.flip, Mutator.byte, Mutator.word, Mutator.cut, Mutator.end, Mutator.repeat, Mutator.noise, Mutator.splice,
)  # fmt: skip
_TOKENS = (
    Mutator.token, Mutator.token, Mutator.swap, Mutator.number, Mutator.number, Mutator.line, Mutator.line,
    Mutator.nest,
)  # fmt: skip
