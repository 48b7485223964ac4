"""What a chip is: one TOML description each, its schema and the loader."""

from targets.loader import Target, load_target, target_for_architecture, target_names

__all__ = ["Target", "load_target", "target_for_architecture", "target_names"]
