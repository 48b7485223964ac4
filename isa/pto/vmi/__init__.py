"""The level of logical registers of `.pto` text, `pto.vmi`: any number of lanes (docs/reference/micro.md 9)."""
