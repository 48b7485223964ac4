"""Tools: questions about programs and casts that the core does without, a folder each."""
