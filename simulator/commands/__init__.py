"""The commands, one module each.

A command module has `SUMMARY` (one line of the help), `declare(parser)` (its arguments) and `execute(options) ->
Outcome`. Its top level imports nothing heavy: `--help` must answer at once.
"""
