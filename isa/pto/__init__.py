"""The `.pto` assembly text of Ascend PTO: reading, checking, printing."""
