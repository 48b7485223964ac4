"""Casts in the TPC compiler: builtins, C and LLVM casts, schedules, redundant reordering."""
