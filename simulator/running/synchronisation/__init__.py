"""Order between pipes: flags and barriers to insert, and remaining races."""
