"""What users would take instead, beside ours: a few rows and small rivals for each paper."""
