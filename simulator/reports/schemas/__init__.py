"""Common parts of documents, documents that commands build themselves, and the JSON Schemas of all.

The others are in `castsim.reports` beside their builders. Only `castsim schema` and the tests import `registry`.
"""
