import numpy as np

from graphgps_pearl.report.molecules import within_molecules


def test_colours_show_differences_within_a_molecule():
    rng = np.random.default_rng(0)
    within = [rng.normal(size=(n, 1)) @ np.array([[1.0, 0.0]]) for n in (5, 9)]
    offsets = [np.array([0.0, 100.0]), np.array([0.0, -100.0])]  # between molecules, and far larger
    values = within_molecules([part + offset for part, offset in zip(within, offsets, strict=True)])
    for value, part in zip(values, within, strict=True):
        centred = part[:, 0] - part[:, 0].mean()
        np.testing.assert_allclose(value, centred / np.abs(centred).max(), atol=1e-9)


def test_atoms_that_are_all_equal_stay_white():
    (values,) = within_molecules([np.ones((4, 3))])
    assert (values == 0).all()
