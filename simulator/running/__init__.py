"""Running programs: read and loaded for a target (`program_loading`), then computed and timed (`program_runs`).

Programs of every language are loaded to one interface (`loaded`).
"""

from castsim.execution.run_limits import MAX_CYCLES
from castsim.running.loaded import Loaded, LoadedProgram
from castsim.running.program_loading import load, load_program, load_text
from castsim.running.program_runs import Result, computed, run, run_loaded

__all__ = [
    "MAX_CYCLES", "Loaded", "LoadedProgram", "Result", "computed", "load", "load_program", "load_text", "run",
    "run_loaded",
]  # fmt: skip
