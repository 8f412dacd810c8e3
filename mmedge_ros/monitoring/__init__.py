"""The state of the computer and its supply, and limits imposed on it."""
