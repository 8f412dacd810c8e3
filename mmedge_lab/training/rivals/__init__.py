"""Training of the rivals that the package is compared with."""
