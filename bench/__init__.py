"""The benchmark of the whole stack: `python -m bench`; docs/measurements.md says what is measured and how."""
