"""Changes of a program's text that keep its outputs to the bit and save cycles, each of them checked."""
