"""The assembly text of Habana TPC: reader, printer, instruction table."""
