"""Settings of the site: ``make docs`` builds it, and a warning is an error."""

import shutil
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

sys.path.insert(0, str(DOCS / "extensions"))

project = METADATA["name"].replace("-", "_")
author = METADATA["authors"][0]["name"]
version = release = METADATA["version"]
copyright = author

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    # Ours: see the folder of that name.
    "docstrings",
    "formulas",
    "names",
    "reference",
]
exclude_patterns = ["data", "extensions", "tables.py"]

# -- Pages ---------------------------------------------------------------------------------------

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 4

# The notebook shows the output that it was saved with; a test runs it.
nb_execution_mode = "off"
shutil.copy(ROOT / "examples" / "tour.ipynb", DOCS / "tour.ipynb")

# -- Reference -----------------------------------------------------------------------------------

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the types stand in the signatures of the source, one click away
autodoc_class_signature = "mixed"
# An attribute in a docstring's list becomes a reference by its bare name, which several classes may have.
suppress_warnings = ["ref.python"]

# -- Looks ---------------------------------------------------------------------------------------

html_theme = "furo"
html_title = project
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_show_sourcelink = False
html_copy_source = False
pygments_style = "default"
pygments_dark_style = "github-dark"

# Output and prompts are not copied, and the button does not cover code: see style.css.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"
