"""Formulas as MathML, which browsers draw without a script: the site works offline."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_SPACE = '<mspace width="0.17em"/>'
_BEFORE = re.compile(r"(?<=</mi>|</mn>)(?=(?:<msup>)?<mi>(?:log|tanh|sinh)</mi>)")
_AFTER = re.compile(r"(?<!<msup><mi>log</mi>)(?<=<mi>log</mi>)(?=<m[ir])")
"""Places of a thin space next to the name of a function, which the converter leaves out."""

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace the LaTeX in a page by MathML."""
    return _FORMULA.sub(_mathml, content)


def _mathml(formula: re.Match[str]) -> str:
    element, latex = formula.groups()
    display = "block" if element == "div" else "inline"
    drawn = convert(html.unescape(latex), display=display)
    return f"<{element}>{_AFTER.sub(_SPACE, _BEFORE.sub(_SPACE, drawn))}</{element}>"
