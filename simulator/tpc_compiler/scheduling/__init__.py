"""Scheduling of assembly text: virtual registers to real ones, one instruction a line to bundles."""

from __future__ import annotations

from castsim.tpc_compiler.scheduling.names import has_virtual_registers
from castsim.tpc_compiler.scheduling.scheduler import Length, Scheduled, schedule, schedule_program

__all__ = ["Length", "Scheduled", "has_virtual_registers", "schedule", "schedule_program"]
