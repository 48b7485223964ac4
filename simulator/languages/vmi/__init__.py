"""The dialect of logical registers (`pto.vmi`), whose operations become vector instructions of the A5."""
