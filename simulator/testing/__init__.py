"""Assertions for the tests of those who write casts and kernels, and the pytest plugin that hands them out."""
