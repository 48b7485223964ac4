"""Studies of many runs: what limits a program, what changed between two, which change or shape makes it faster."""
