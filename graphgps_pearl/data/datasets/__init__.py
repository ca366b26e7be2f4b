"""One dataset, one file; every module here is imported when a dataset is looked up."""
