"""Which function of single elements each instruction is: of two, of one, of an element and a scalar."""

from __future__ import annotations

from fractions import Fraction

from core.machines.vector_function import lanes_elements as el
from kit import lanes_model as model

BINARY = {
    "vadd": el.add,
    "vsub": el.sub,
    "vmul": el.mul,
    "vmax": lambda a, b, name: el.extreme(a, b, name, largest=True),
    "vmin": lambda a, b, name: el.extreme(a, b, name, largest=False),
    "vaddrelu": lambda a, b, name: el.relu(el.add(a, b, name), name),
    "vsubrelu": lambda a, b, name: el.relu(el.sub(a, b, name), name),
    "vand": lambda a, b, _: a & b,
    "vor": lambda a, b, _: a | b,
    "vxor": lambda a, b, _: a ^ b,
    "vdiv": el.div,
    "vprelu": el.leaky,
}
UNARY = {
    "vabs": el.absolute,
    "vneg": el.negated,
    "vrelu": el.relu,
    "vnot": lambda a, name: a ^ ((1 << model.bits_of(name)) - 1),
    "vsqrt": el.sqrt,
    "vrec": lambda a, name: el.div(el.rounded(Fraction(1), name), a, name),
    "vrsqrt": lambda a, name: el.div(el.rounded(Fraction(1), name), el.sqrt(a, name), name),
}
SCALAR = {"vadds": "vadd", "vmuls": "vmul", "vmaxs": "vmax", "vmins": "vmin", "vlrelu": "vprelu"}
