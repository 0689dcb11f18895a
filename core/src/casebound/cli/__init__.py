"""The command line: one module a command group. A command parses, calls and prints; it decides nothing."""
