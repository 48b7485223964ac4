"""The micro-instruction level of `.pto`: programs of vector instructions (docs/reference/micro.md)."""
