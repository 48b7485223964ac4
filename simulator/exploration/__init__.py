"""Studies of many runs: limits of a program, differences between two, faster changes and shapes."""
