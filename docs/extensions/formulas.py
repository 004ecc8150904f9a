"""Formulas as MathML, which browsers draw without a script or a network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

_THIN_SPACE = '<mspace width="0.17em"/>'

_BEFORE_FUNCTION = re.compile(r"(?<=</mi>|</mn>)(?=(?:<msup>)?<mi>(?:log|tanh|sinh)</mi>)")
"""Place of a thin space before the name of a function, which the converter leaves out."""

_AFTER_LOGARITHM = re.compile(r"(?<!<msup><mi>log</mi>)(?<=<mi>log</mi>)(?=<m[ir])")
"""Place of a thin space between a logarithm and its argument."""


def to_mathml(latex: str, display: str) -> str:
    """Convert a formula, "inline" or a "block"."""
    mathml = convert(latex, display=display)
    mathml = _BEFORE_FUNCTION.sub(_THIN_SPACE, mathml)
    return _AFTER_LOGARITHM.sub(_THIN_SPACE, mathml)


def _write_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(to_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _write_block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{to_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(_write_inline, None),
        block_renderers=(_write_block, None),
    )
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
