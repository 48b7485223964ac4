"""Number formats, modes, programs and the errors they raise, independent of any chip."""
