"""Named benchmarks: `python -m benchmarks NAME` prints a table, with rivals in the same run, and saves it as JSON."""
