"""Vector instructions of the micro level as functions on registers and masks; nothing here knows programs or time.

`Register` and `Mask` are values; `convert` and `truncate` are `vcvt` and `vtrc`; `load` and `store` move registers by
distribution; `OPERATIONS` holds a row for every other instruction, and `execute` runs one. Meaning of each:
docs/reference/micro.md 3 to 5.
"""

from castsim.machines.vector_function.lanes.conversion import convert, truncate
from castsim.machines.vector_function.lanes.registers import Mask, Register, every_lane, unwritten

__all__ = ["Mask", "Register", "convert", "every_lane", "truncate", "unwritten"]
