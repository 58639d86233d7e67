"""Datasets, samplers and the loader."""
