"""From the results of runs to tables."""
