"""Reports: functions of finished results, as text (rich) and as JSON documents. They only listen.

Modules named `*_text` and `terminal` need rich; the others build plain data, so that JSON costs no rich.
"""
