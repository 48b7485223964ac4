"""Machines: one folder per mechanism with its operations, lowering, values and legality."""
