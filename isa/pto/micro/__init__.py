"""The micro level of `.pto` text: programs of vector instructions of the A5 (docs/reference/micro.md)."""
