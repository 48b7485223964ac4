"""Execution of programs: the walk of control flow, tiles and transfers, and the tree of operations that it leaves."""
