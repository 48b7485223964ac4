"""Reports: functions of finished results, as text (rich) and as JSON documents. They never change a result.

Modules named `*_text` and `terminal` need rich; the others build plain data, so JSON output does not load rich.
"""
