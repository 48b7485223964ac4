"""The vector-function mechanism: hardware loop nests over register operations.

Source: docs/reference/a5.md sections 1 to 5.
"""
