"""The VLIW machine: one bundle per cycle, four slots, an exposed pipeline (tpc.md sections 1, 6 and 7)."""
