"""Binaries of TPC programs: the encoding of bundles, assembly to bytes and back, and binaries as programs."""
