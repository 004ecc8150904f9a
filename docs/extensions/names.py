"""Links from names in full, such as `ldp_gym.theory.wma_bound`, to their places in the reference."""

from __future__ import annotations

import pkgutil
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

PACKAGES = ("ldp_gym.", "ldp_agents.", "ldp_bench.")


class LinkNames(SphinxPostTransform):
    """Turn every name of ours in code type into a link, if the reference has it."""

    default_priority = 100

    def run(self, **_: Any) -> None:
        """Go through the names of one page."""
        objects = self.env.domains.python_domain.objects
        for literal in list(self.document.findall(nodes.literal)):
            name = literal.astext()
            linked = isinstance(literal.parent, nodes.reference)
            if linked or not name.startswith(PACKAGES):
                continue

            entry = objects.get(name) or objects.get(defining_name(name))
            if entry is not None:
                link = make_refnode(
                    self.app.builder,
                    self.env.docname,
                    entry.docname,
                    entry.node_id,
                    literal.deepcopy(),
                )
                literal.replace_self(link)


def defining_name(name: str) -> str:
    """Name of an object in the module that defines it: `ldp_gym.channels.base.Channel`, say."""
    try:
        item = pkgutil.resolve_name(name)
    except (AttributeError, ImportError, ValueError):
        return name
    module = getattr(item, "__module__", None)
    qualified_name = getattr(item, "__qualname__", None)
    if module is None or qualified_name is None:
        return name
    return f"{module}.{qualified_name}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform with Sphinx."""
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
