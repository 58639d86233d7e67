"""Operators of neural networks: attention, normalisation, recurrence, dropout, embeddings, losses."""
