"""PTO C++ kernels: compiled by the system's compiler, run once on the host in a child process, recorded as a program.

The recorder is a header of castsim's own (`include/`), which has the names of the vendor's library and sends what a
kernel does: tiles with their addresses, transfers, flags. Nothing here runs unless a command names a C++ file.
"""

from castsim.pto_cpp.recording import CppRecording, Request, record, record_all, run

__all__ = ["CppRecording", "Request", "record", "record_all", "run"]
