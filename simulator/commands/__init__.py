"""The commands, one module each: options, help and execution.

A module has `declare(parser)`, which adds its arguments, and `execute(options) -> Outcome`; its docstring ends the
help. Printing a help does not execute the module (`command_line.declaration`): its imports are at the top, and
`declare` uses nothing but its parser. Modules that commands share import no command.
"""
