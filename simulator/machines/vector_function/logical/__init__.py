"""Functions with logical registers as vector instructions: registers split, parts, distributions and masks chosen.

The vendor's compiler chooses in its own way, which no text states; values do not depend on that, cycles do. Source:
docs/reference/micro.md section 9.5.
"""

from castsim.machines.vector_function.logical.logical_function import lower_function

__all__ = ["lower_function"]
