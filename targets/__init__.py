"""Descriptions of chips: one TOML file each, its schema and the loader; likewise specifications of casts."""
