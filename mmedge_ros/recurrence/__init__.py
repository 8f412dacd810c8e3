"""What recurs: object memory of the picture stream, semantic memory of tracks (reserved)."""
