"""The VLIW machine: one bundle per cycle, four slots, an exposed pipeline.

Source: docs/reference/tpc.md sections 1, 6 and 7.
"""
