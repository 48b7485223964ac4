"""Walking programs: path and addresses are computed here, every tile instruction is lowered where it is met."""
