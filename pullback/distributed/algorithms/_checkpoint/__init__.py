"""Activation checkpointing of the modules of a tree."""
