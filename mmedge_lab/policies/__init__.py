"""Rivals: policies that say which units are encoded when, and when a decision is made."""
