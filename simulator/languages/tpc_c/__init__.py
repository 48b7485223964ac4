"""TPC-C kernels: preprocessed, parsed, checked and lowered to sequential TPC instructions."""
