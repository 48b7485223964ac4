"""Time of micro programs: the instructions of a vecscope one by one (docs/reference/micro.md 6)."""
