"""The command line: the entry point, the options of each command, and what each command does."""
