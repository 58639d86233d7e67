"""Loops to source text."""
