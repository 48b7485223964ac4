"""Functions with logical registers as vector instructions: registers split, parts, distributions and masks chosen.

The vendor's compiler chooses in its own way, which no text states; values do not depend on that, cycles do. Source:
docs/reference/micro.md section 9.5.
"""
