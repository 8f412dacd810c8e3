"""Benches of the pipeline: optimiser, predictor, gate, fusion, latency, load, and its rivals."""
