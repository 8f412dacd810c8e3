"""Training: data sets from flights, the networks' training, and their export to bundles."""
