"""Simulated flights with ground truth: scenes, camera and radar models, system dynamics."""
