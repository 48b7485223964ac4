"""Execution of programs: the walk of control flow, tiles and transfers, and the resulting tree of operations."""
