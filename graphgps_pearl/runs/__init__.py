"""What runs leave on disk: folders, checkpoints, locks, results of seeds and their mean. Trains nothing."""
