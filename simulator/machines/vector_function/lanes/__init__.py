"""Vector instructions of the micro level as functions on registers and masks; nothing here knows programs or time.

`Register` and `Mask` are values; `convert` and `truncate` are `vcvt` and `vtrc`; `load` and `store` move registers by
distribution; `OPERATIONS` holds a row for every other instruction, and `execute` runs one. Meaning of each:
docs/reference/micro.md sections 3 to 5.
"""

from castsim.machines.vector_function.lanes.lane_operations import OPERATIONS, Operation, execute, squeezed_bytes
from castsim.machines.vector_function.lanes.loads_stores import (
    gather,
    gather_blocks,
    load,
    load_blocks,
    load_predicate,
    load_unaligned,
    scatter,
    store,
    store_blocks,
    store_predicate,
    store_unaligned,
)
from castsim.machines.vector_function.lanes.vector_registers import (
    Mask,
    Operands,
    Register,
    Value,
    convert,
    every_lane,
    truncate,
    unwritten,
)

__all__ = [
    "OPERATIONS",
    "Mask",
    "Operands",
    "Operation",
    "Register",
    "Value",
    "convert",
    "every_lane",
    "execute",
    "gather",
    "gather_blocks",
    "load",
    "load_blocks",
    "load_predicate",
    "load_unaligned",
    "scatter",
    "squeezed_bytes",
    "store",
    "store_blocks",
    "store_predicate",
    "store_unaligned",
    "truncate",
    "unwritten",
]
