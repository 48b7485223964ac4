"""Running programs: read and loaded for a target (`program_loading`), then computed and timed (`program_runs`).

Programs of every language are loaded to one interface (`loaded`).
"""
