"""Model bundles: manifest, levels, weights and where they come from."""
