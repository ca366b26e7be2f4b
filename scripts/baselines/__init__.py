"""What the benchmark compares with: plain implementations that pad, as the paper's code and GraphGPS do."""
