"""Questions about a flight, answered from what was perceived.

Reserved: no module yet.
"""
