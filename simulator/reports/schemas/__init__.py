"""The shape of every `--json` document: pydantic models, from which JSON Schemas and their reference page are made.

Nothing but `castsim schema` and the tests imports this package: commands make their documents without it.
"""
