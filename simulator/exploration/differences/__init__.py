"""What differs between two runs: cycles, causes, lines matched by what they say, outputs to the bit."""
