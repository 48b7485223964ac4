"""The TPC compiler: code for casts and builtins, virtual registers, instructions put into bundles."""
