"""The vector-function mechanism: hardware loop nests over register operations (a5.md sections 1 to 5)."""
