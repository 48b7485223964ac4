"""Vector operations on tiles: what each computes, what it refuses, which bytes it touches; nothing about time."""
