"""Programs of vector instructions: control flow, scalars, pointers and transfers; a vector unit does the rest."""
