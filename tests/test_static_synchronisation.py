"""The worked examples of docs/reference/pto.md section 5.7, line by line: flags that depend on the text alone."""

from __future__ import annotations

import re

import pytest
from sync_programs import A3, A5, listing

from castsim.execution.synchronisation.flags import plan
from castsim.execution.synchronisation.removing import ElementListing, OperandBytes

EXAMPLES = {
    "a straight line": (
        "tload p x\ntcvt x y\ntstore y h",
        """tload; + set MTE2->V #0
        + wait MTE2->V #0; tcvt; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore
        + barrier ALL""",
    ),
    "a chain of vector operations": (
        "tload p x\ntmuls x x\ntadds x z\ntrowmax z t r\ntrowexpandsub z r x\ntstore x q",
        """tload; + set MTE2->V #0
        + wait MTE2->V #0; tmuls
        tadds
        trowmax
        + barrier V; trowexpandsub; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore
        + barrier ALL""",
    ),
    "a loop, one buffer each": (
        "for 0 {\ntload p x\ntcvt x y\ntstore y h\n}",
        """+ set V->MTE2 #0; + set MTE3->V #0; for
        + wait V->MTE2 #0; tload; + set MTE2->V #0
        + wait MTE2->V #0; + wait MTE3->V #0; tcvt; + set V->MTE2 #0; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore; + set MTE3->V #0
        end
        + wait V->MTE2 #0; + wait MTE3->V #0; + barrier ALL""",
    ),
    "a load before a loop": (
        "tload p w\nfor 0 {\ntload q x\ntmul x w z\ntstore z s\n}",
        """+ set V->MTE2 #0; + set MTE3->V #0; tload
        for
        + wait V->MTE2 #0; tload; + set MTE2->V #0
        + wait MTE2->V #0; + wait MTE3->V #0; tmul; + set V->MTE2 #0; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore; + set MTE3->V #0
        end
        + wait V->MTE2 #0; + wait MTE3->V #0; + barrier ALL""",
    ),
    "a branch, and a use after it": (
        "tload p x\ntmuls x z\nif {\ntadds z z\ntstore z s\n}\ntstore z q",
        """tload; + set MTE2->V #0
        + wait MTE2->V #0; tmuls; + set V->MTE3 #1
        if
        tadds; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore
        end
        + wait V->MTE3 #1; tstore
        + barrier ALL""",
    ),
    "a branch in a loop": (
        "for 0 {\ntload p x\nif {\ntmuls x x\n}\ntstore x q\n}",
        """+ set MTE3->MTE2 #0; for
        + wait MTE3->MTE2 #0; tload; + set MTE2->MTE3 #0; + set MTE2->V #0
        + wait MTE2->V #0; if
        tmuls
        end; + set V->MTE3 #0
        + wait V->MTE3 #0; + wait MTE2->MTE3 #0; tstore; + set MTE3->MTE2 #0
        end
        + wait MTE3->MTE2 #0; + barrier ALL""",
    ),
    "a sum in a loop, stored after it": (
        "texpands z\nfor 0 {\ntload p x\ntadd z x z\n}\ntstore z q",
        """+ set V->MTE2 #0; texpands
        for
        + wait V->MTE2 #0; tload; + set MTE2->V #0
        + wait MTE2->V #0; tadd; + set V->MTE2 #0
        end; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore
        + wait V->MTE2 #0; + barrier ALL""",
    ),
    "a loop in a loop": (
        "for 0 {\ntload p w\nfor 0 {\ntload q x\ntmul x w z\ntstore z s\n}\n}",
        """+ set V->MTE2 #0; + set V->MTE2 #1; + set MTE3->V #0; for
        + wait V->MTE2 #0; tload
        for
        + wait V->MTE2 #1; tload; + set MTE2->V #0
        + wait MTE2->V #0; + wait MTE3->V #0; tmul; + set V->MTE3 #0; + set V->MTE2 #1
        + wait V->MTE3 #0; tstore; + set MTE3->V #0
        end; + set V->MTE2 #0
        end
        + wait V->MTE2 #0; + wait V->MTE2 #1; + wait MTE3->V #0; + barrier ALL""",
    ),
    "a load before a loop that may not run": (
        "tload p x\nfor 1 {\nif {\ntmov x a\n}\n}\ntmov x b",
        """tload; + set MTE2->V #0
        + wait MTE2->V #0; for
        if
        + barrier V; tmov
        end
        end
        tmov
        + barrier ALL""",
    ),
}
"""The body of a program, and its statements in order, each with the flags that stand before and behind it."""


@pytest.mark.parametrize("target", [A3, A5], ids=["a2a3", "a5"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_worked_examples(name: str, target) -> None:
    body, expected = EXAMPLES[name]
    lines = re.split(r"(?:;|\n) *", expected)
    assert listing(body, target) == [line for line in lines if target is A3 or line != "+ barrier V"]


@pytest.mark.parametrize("target", [A3, A5], ids=["a2a3", "a5"])
def test_scalars_from_memory_and_a_gather(target) -> None:
    """Operations of the scalar unit by their buffers; a program with a gather keeps all its flags."""
    x, i, z = (OperandBytes("vec", n, ((n * 8192, n * 8192 + 8192),), 8192) for n in range(3))
    p, n = OperandBytes("gm", "p"), OperandBytes("gm", "n")
    found = ElementListing()
    for pipe, reads, writes in (
        ("MTE2", [p], [x]), ("S", [n], []), ("S", [], [i]), ("V", [x, i], [z]), ("S", [z], []), ("S", [], [p]),
        ("MTE3", [z], [p]),
    ):  # fmt: skip
        found.operation(pipe, reads, writes, gathers=pipe == "V")
    made = plan(found, target)

    def texts(orders) -> list[str]:
        kinds = {"SetFlag": "set", "WaitFlag": "wait"}
        return [f"{kinds[type(o).__name__]} {o.src[5:]}->{o.dst[5:]} #{o.event}" for o in orders]

    assert made.start == ()
    assert [(texts(a), texts(b)) for a, b in zip(made.before, made.after, strict=True)] == [
        ([], ["set MTE2->V #0"]), ([], []), ([], ["set S->V #0"]),
        (["wait S->V #0", "wait MTE2->V #0"], ["set V->S #0"]), (["wait V->S #0"], []), ([], ["set S->MTE3 #0"]),
        (["wait S->MTE3 #0"], []),
    ]  # fmt: skip
