"""Progress bar of a plan, on the standard error."""

from __future__ import annotations

from typing import Any

from ldp_gym.core.errors import extra


class Bar:
    """Context manager: a bar of surveys that have ended, with the time left; nothing if quiet."""

    def __init__(self, quiet: bool) -> None:
        """Make the bar; it is shown on terminals only."""
        self._progress: Any = None
        self._task: Any = None
        if quiet:
            return
        with extra("bench", "the progress bar of ldp_bench.plan"):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
        console = Console(stderr=True)
        self._progress = Progress(
            BarColumn(20),
            TextColumn("{task.completed:,}/{task.total:,} surveys"),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Bar:
        """Show the bar."""
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()

    def begin(self, title: str, total: int) -> None:
        """Start a task of ``total`` surveys."""
        self._title = title
        if self._progress is not None:
            self._task = self._progress.add_task(title, total=total)

    def show(self, ended: int, asked: int) -> None:
        """Show how many surveys have ended, and how many users the others have asked."""
        if self._progress is not None:
            text = f"{self._title}, {asked:,} users asked"
            self._progress.update(self._task, completed=ended, description=text)

    def end(self) -> None:
        """Remove the task."""
        if self._progress is not None:
            self._progress.remove_task(self._task)
