"""What the benchmark measures: each suite gives cases, and sentences to print with them."""

from suites.case import Case, Curve, Step
from suites.cost import cost_suite, samples_suite
from suites.encodings import pe_suite, scale_suite
from suites.training import epoch_suite, gps_suite

SUITES = {
    "pe": pe_suite,
    "gps": gps_suite,
    "epoch": epoch_suite,
    "scale": scale_suite,
    "cost": cost_suite,
    "samples": samples_suite,
}

__all__ = ["SUITES", "Case", "Curve", "Step"]
