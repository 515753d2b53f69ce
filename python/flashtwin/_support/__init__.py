"""Helpers of the package that no user imports: a public name is exported by `flashtwin`."""
