"""The bytes of each on-chip buffer that a program touches, for reports (`castsim.execution.tree`)."""

from castsim.execution.tree import BufferUse, Reach, buffer_use, moved_accesses

__all__ = ["BufferUse", "Reach", "buffer_use", "moved_accesses"]
