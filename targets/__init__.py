"""Descriptions of chips: one TOML file each, its schema and the loader; also specifications of casts."""
