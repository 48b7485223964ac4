"""The assembly text of Habana TPC: reading, printing, the instruction table."""
