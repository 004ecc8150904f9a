"""Addresses of the project, as the metadata of a wheel has them: all from one variable."""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAPER = "https://proceedings.mlr.press/v238/sima24a.html"


class Addresses(MetadataHookInterface):
    """Fill in `urls` from the environment variable LDP_GYM_REPOSITORY; without it only the paper's."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses to the project's metadata."""
        metadata["urls"] = {"Paper": PAPER}
        repository = os.environ.get("LDP_GYM_REPOSITORY", "").rstrip("/")
        if repository:
            owner, name = repository.split("/")[-2:]
            metadata["urls"] |= {
                "Repository": repository,
                "Documentation": f"https://{owner}.github.io/{name}/",
                "Issues": f"{repository}/issues",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
            }
