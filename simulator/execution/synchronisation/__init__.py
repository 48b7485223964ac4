"""Order between pipes: flags and barriers to insert, and races that are left."""
