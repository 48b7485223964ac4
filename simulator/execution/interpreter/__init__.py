"""The walk of programs: it computes path and addresses, and lowers every tile instruction when it is reached."""
