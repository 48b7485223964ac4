"""What the TPC compiler does with casts: builtins, C and LLVM casts, schedules, redundant reordering."""
