"""Drawing what was perceived."""
