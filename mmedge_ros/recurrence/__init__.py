"""What recurs: object memory of the picture stream, semantic memory of tracks.

Reserved: no module yet.
"""
