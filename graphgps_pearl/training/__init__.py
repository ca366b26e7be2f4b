"""Training: the Lightning task, losses, metrics, schedules, and what a run leaves on disk."""
