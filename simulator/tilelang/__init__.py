"""Kernels of TileLang's dialect for the Ascend 950, lowered by TileLang itself and run as programs of vector instructions.

`program` gives a kernel's text, `run` runs it, `simulated` simulates the kernels that a user's own host code calls.
TileLang is loaded when one of them is used; a Python file is executed only by the commands that name it.
"""
