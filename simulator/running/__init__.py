"""Running programs: read and loaded for a target (`loading`), then computed and timed (`runs`).

Programs of every language are loaded to one interface (`loaded`): tile programs in `tiles`, assembly in `assembly`.
"""

from castsim.execution.run_limits import MAX_CYCLES
from castsim.running.loaded import Loaded, LoadedProgram
from castsim.running.program_loading import load, load_program, load_text
from castsim.running.program_runs import Result, computed, run, run_loaded

__all__ = [
    "MAX_CYCLES", "Loaded", "LoadedProgram", "Result", "computed", "load", "load_program", "load_text", "run",
    "run_loaded",
]  # fmt: skip
