"""Vector operations on tiles: results, legality and touched bytes, without time."""
