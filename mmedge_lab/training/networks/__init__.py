"""Networks that are trained here and exported for flight; everything in them needs torch."""
