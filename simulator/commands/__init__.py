"""The commands, a file each: options, help and execution.

A file has `declare(parser)`, which adds its arguments, and `execute(options) -> Outcome`; its docstring ends the help.
A help does not execute the file (`command_line.declaration`): what the work needs is imported at the top, and `declare`
knows nothing but its parser. What commands share imports no command.
"""
