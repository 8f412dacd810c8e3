"""Power policy by battery and load, and where models run.

Reserved: no module yet.
"""
