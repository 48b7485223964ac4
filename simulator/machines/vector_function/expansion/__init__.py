"""Tile programs as programs of vector instructions: what a lowered program issues, written as micro text.

Source: docs/reference/micro.md section 7.
"""
