"""Geometry between the sensors, and the fusion of what they see."""
