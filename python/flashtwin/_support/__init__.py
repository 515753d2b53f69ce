"""Helpers of the package that users do not import; public names are exported by `flashtwin`."""
