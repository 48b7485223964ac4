"""Stepping through a program forwards and backwards: recorded once by the normal machinery, then played either way.

Values are those of program order, cycles those of the engine: no rule of either stands here. `recording` follows the
run and writes down what each operation changed (`journal`); `trace` plays that; `stepper` moves from stop to stop.
"""
