"""Construction of micro operations: expanded tile operations, and lowered logical registers."""
