"""The command line: one file a verb. Each verb imports what it needs when it runs, so that `--help` is quick."""
