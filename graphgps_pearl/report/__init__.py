"""Reads runs: tables, plots, pages and pictures over configs and seeds."""
