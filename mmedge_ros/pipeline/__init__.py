"""From units to decisions: admission, windows, and the perception pipeline."""
