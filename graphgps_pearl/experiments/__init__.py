"""What starts runs: comparisons, searches, evaluations of trained models under other settings."""
