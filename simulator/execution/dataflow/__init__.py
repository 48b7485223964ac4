"""What all mechanisms with a tile buffer share: transfers, synchronisation, tile checks, and their values."""
