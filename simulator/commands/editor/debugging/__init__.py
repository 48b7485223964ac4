"""The Debug Adapter Protocol: editors step through programs (https://microsoft.github.io/debug-adapter-protocol)."""
