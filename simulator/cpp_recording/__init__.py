"""Kernels in C++ of any library: compiled for the host, executed once in a child process, recorded as a program."""
