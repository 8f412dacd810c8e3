"""Cameras: devices, files and messages."""
