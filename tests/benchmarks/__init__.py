"""How fast casts are, beside the libraries people use today: `python tests/benchmarks --help`."""
