"""Evidence: exhaustive verification with its records, and accuracy against published cycles."""
