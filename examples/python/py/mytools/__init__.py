"""Functions that examples/python/tools.yaml makes tools of."""
