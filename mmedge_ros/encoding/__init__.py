"""Encoders: pictures and radar scans to detections, embeddings and feature grids."""
