"""The level of logical registers of `.pto` text, `pto.vmi`: any number of lanes, no parts (docs/reference/micro.md 8)."""
