"""The bench of recognition: the semantic memory of a classifier beside its rivals."""
