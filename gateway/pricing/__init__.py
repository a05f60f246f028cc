"""Prices: components, the ceiling of a request before it runs, and the charge after it. Pure functions."""
