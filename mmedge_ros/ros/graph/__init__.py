"""The graph of nodes: what it consists of, and its processes."""
