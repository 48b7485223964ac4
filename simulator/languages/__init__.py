"""Languages: sources other than program text that become programs, a folder each."""
