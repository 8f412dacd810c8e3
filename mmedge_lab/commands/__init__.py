"""The words of the laboratory: one module for each."""
