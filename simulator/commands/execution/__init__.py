"""The execution of the commands, one module each; loaded only when the command runs.

A module has `execute(options) -> Outcome`. Its arguments are declared by the module of the same name one floor up.
"""
