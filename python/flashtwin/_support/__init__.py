"""Internal helpers of the package. `flashtwin` exports the public names."""
