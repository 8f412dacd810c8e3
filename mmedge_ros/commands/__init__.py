"""The `mmedge` command line: one module for each word."""
