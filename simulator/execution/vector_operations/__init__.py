"""Vector operations on tiles: results, refusals and touched bytes, without time."""
