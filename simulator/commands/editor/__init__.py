"""Editor services for programs: findings as the text changes, hover, completion, cycles of lines, repairs.

`server` speaks the Language Server Protocol; only it and its private modules import pygls (extra `lsp`).
`debug_adapter` lets editors step through programs (https://microsoft.github.io/debug-adapter-protocol).
"""
