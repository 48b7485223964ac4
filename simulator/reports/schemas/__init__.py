"""What documents have in common, those that commands put together themselves, and the JSON Schemas of all.

The others stand in `castsim.reports` beside what makes them. Only `castsim schema` and the tests import `registry`.
"""
