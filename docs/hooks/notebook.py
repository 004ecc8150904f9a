"""The page of the notebook: its text, code, output and pictures."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import nbformat

NOTEBOOK = Path(__file__).parent.parent.parent / "examples" / "tour.ipynb"


def on_files(files: Any, config: Any) -> Any:
    """Add the page and its pictures to the files that are written by hand."""
    from mkdocs.structure.files import File

    lines, pictures = [], {}
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.cell_type == "markdown":
            lines.append(cell.source.replace("](../docs/", "]("))
            continue
        lines.append(f"```py\n{cell.source}\n```")
        if text := "".join(output.get("text", "") for output in cell.outputs).strip():
            lines.append(f"```text\n{text}\n```")
        for output in cell.outputs:
            if png := output.get("data", {}).get("image/png"):
                name = f"pictures/tour-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(png)
                lines.append(f"![Picture drawn by the code above]({name})")
    files.append(File.generated(config, "tour.md", content="\n\n".join(lines)))
    for name, content in pictures.items():
        files.append(File.generated(config, name, content=content))
    return files
