"""What ``scripts/attack.py`` does to the package: one module per kind of attack."""
