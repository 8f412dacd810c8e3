"""Moments of a flight, kept and searched.

Reserved: no module yet.
"""
