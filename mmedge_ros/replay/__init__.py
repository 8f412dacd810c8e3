"""Recordings: reading bags, offline replay and the live player."""
