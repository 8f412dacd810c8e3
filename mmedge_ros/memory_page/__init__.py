"""The page of a flight memory: one file to look at and to search, without a network."""
