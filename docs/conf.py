"""Sphinx: the pages of this folder, and the API reference from the docstrings.

In the top-level folder: python -m sphinx -W -b html docs docs/_build
"""

from graphgps_pearl import __version__

project = "graphgps_pearl"
author = "The graphgps_pearl authors"
release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"graphgps_pearl {__version__}"

myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # the notebook's shell lines are not Python
nb_execution_mode = "off"  # the notebook is committed with its outputs, and tests/docs runs it

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": True}
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False
