"""Write the tables, findings and lists of names of the pages, from docs/data and the registries.

A number has one home, a file in docs/data. A page shows it between two comments, and this program writes what
stands between them:

    <!-- table: limit -->                                      all of docs/data/limit.csv
    <!-- table: outside | where channel = split | only truth, bayes, robust -->
    <!-- findings: rates | about slope -->                     from docs/data/findings.json
    <!-- names: channels -->                                   every registered name, with its page
    <!-- arguments: LDPDist-v0 -->                             every argument of gym.make
    <!-- games: baselines -->                                  every id, with its best score
    <!-- end -->

Run it after a change of data, or after a run of the benchmark:

    python docs/tables.py                                      # rewrite README.md and docs/*.md
    python docs/tables.py --results ldp-gym-results            # take findings and figures from there first
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pandas import DataFrame

    from ldp_bench.results import Results

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "data"
FIGURES = ROOT / "docs" / "pictures" / "results"
BLOCK = re.compile(
    r"^<!-- (table|findings|names|arguments|games): (.+?) -->\n.*?^<!-- end -->$",
    flags=re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"-$|-?\d")


def pages() -> list[Path]:
    """Pages that may have blocks."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def written(text: str) -> str:
    """Text of a page with every block written from the data."""
    return BLOCK.sub(_block, text)


def _block(block: re.Match[str]) -> str:
    kind, description = block.groups()
    name, *options = (part.strip() for part in description.split("|"))
    lines = KINDS[kind](name, options)
    if not lines:
        raise ValueError(f"nothing in docs/data fits <!-- {kind}: {description} -->")
    return "\n".join([f"<!-- {kind}: {description} -->", "", *lines, "", "<!-- end -->"])


def _table(name: str, options: list[str]) -> list[str]:
    """Lines of a Markdown table; columns of numbers are aligned to the right."""
    rows = _rows(name)
    columns = list(rows[0])
    for option in options:
        word, _, rest = option.partition(" ")
        if word == "where":
            column, _, values = (part.strip() for part in rest.partition(" = "))
            wanted = values.split(", ")
            rows = [row for row in rows if row[column] in wanted]
            columns = [name for name in columns if name != column or len(wanted) > 1]
        elif word == "only":
            columns = rest.split(", ")
        else:
            raise ValueError(
                f"a table takes 'where column = value' and 'only columns', got {option!r}"
            )
    if not rows:
        return []
    numeric = [all(NUMBER.match(row[column] or "-") for row in rows) for column in columns]
    return [
        _line(columns),
        "|" + "|".join("--:" if number else "---" for number in numeric) + "|",
        *(_line([_unbroken(row[column]) for column in columns]) for row in rows),
    ]


def _rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a file of docs/data."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _line(cells: list[str]) -> str:
    return f"|{'|'.join(cells)}|"


def _unbroken(cell: str) -> str:
    """Cell whose numbers, an estimate with its error or interval, stay on one line of the page."""
    if not NUMBER.match(cell) or len(cell) >= 24:
        return cell
    unbroken = cell.replace(" ", "\u00a0")
    return (
        unbroken.replace("\u00a0(", " (") if " to " in cell else unbroken
    )  # a range takes its own line


def _findings(name: str, options: list[str]) -> list[str]:
    """Findings of a suite, those that hold one of some texts if the block asks for it."""
    found = json.loads((DATA / "findings.json").read_text(encoding="utf-8"))[name]["findings"]
    for option in options:
        word, _, text = option.partition(" ")
        if word != "about":
            raise ValueError(f"findings take 'about text or other text', got {option!r}")
        found = [
            finding
            for finding in found
            if any(part in finding["text"] for part in text.split(" or "))
        ]
    marks = [finding["mark"].replace("·", "").strip() for finding in found]  # a bullet is enough
    return [
        f"- {mark} {finding['text']}".replace("  ", " ")
        for mark, finding in zip(marks, found, strict=True)
    ]


def _names(kind: str, _: list[str]) -> list[str]:
    """One line with the names of a kind of part that this package registers."""
    import ldp_agents  # noqa: F401  (registers the learners)
    import ldp_gym

    registry = {
        "classes": ldp_gym.HYPOTHESES,
        "natures": ldp_gym.NATURES,
        "truths": ldp_gym.TRUTHS,
        "channels": ldp_gym.CHANNELS,
        "learners": ldp_gym.LEARNERS,
    }[kind]
    names = [name for name in registry if registry[name].__module__.startswith("ldp_")]
    return [", ".join(f"[`{name}`](reference/{kind}.md#{name})" for name in names) + "."]


def _arguments(env_id: str, _: list[str]) -> list[str]:
    """Lines of a table of the arguments of an environment, from its class of rules."""
    import gymnasium as gym

    import ldp_gym  # noqa: F401  (registers the environments)

    arguments = type(gym.make(env_id).unwrapped.arguments)
    rows = []
    for name, sentence in arguments.sentences().items():
        default = getattr(arguments, name)
        shown = (
            ""
            if default is None
            else f"`{json.dumps(default)}`"
            if isinstance(default, str)
            else f"{default}"
        )
        rows.append(_line([f"`{name}`", shown, sentence.replace("``", "`")]))
    return [_line(["argument", "default", "meaning"]), "|---|---|---|", *rows]


@dataclass(frozen=True)
class GameWords:
    """A registered game in a few words: its agent's seat, what it observes and does, what it needs."""

    seat: str
    observation: str
    action: str
    asks_for: str


GAMES = {
    "LDPDist-v0": GameWords("learner", "raw message, context", "distribution", "Bayes' rule"),
    "LDPDistBox-easy-v0": GameWords("learner", "evidence", "logits", "one scalar"),
    "LDPDistBox-medium-v0": GameWords("learner", "evidence", "logits", "one scalar"),
    "LDPDistBox-memory-v0": GameWords("learner", "raw message, context", "logits", "a sum"),
    "LDPDistBox-hard-v0": GameWords(
        "learner", "raw message, context", "logits", "a sum of products"
    ),
    "LDPDistBox-meta-v0": GameWords(
        "learner", "raw message, hypotheses", "logits", "Bayes' rule for any class"
    ),
    "LDPAsk-v0": GameWords("designer", "posterior", "question", "questions that tell apart"),
    "LDPAskMeta-v0": GameWords(
        "designer", "posterior, hypotheses", "question", "the same for any class"
    ),
    "LDPNature-v0": GameWords("Nature", "posterior, pool", "context", "planning"),
}
"""Registered games in the order of the table."""


UNIT_OF_SCORE = {
    "LDPDist-v0": "Bayes",
    "LDPAsk-v0": "greedy questions",
    "LDPAskMeta-v0": "greedy questions",
    "LDPNature-v0": "`adversary`",
}
"""Rule that scores 1 by the definition of the score, in games where no agent was seen to exceed it."""


class BestScore(NamedTuple):
    """A score, and the rule or agent that reached it."""

    score: float
    agent: str

    def __str__(self) -> str:
        return f"{self.score:.2f} ({self.agent})"


def _games(_: str, __: list[str]) -> list[str]:
    """Return the lines of a table of the registered games, with the best score of each."""
    columns = ["id", "seat", "observes", "acts by", "asks for", "best score"]
    lines = [_line(columns), "|" + "---|" * len(columns)]
    for env_id, words in GAMES.items():
        best = _best_score(env_id)
        shown = "-" if best is None else str(best)
        cells = [words.seat, words.observation, words.action, words.asks_for, shown]
        lines.append(_line([f"`{env_id}`", *cells]))
    return lines


def _best_score(env_id: str) -> BestScore | None:
    """Return the best known score of a game, with its rule or agent; None if nothing was scored."""
    if env_id in UNIT_OF_SCORE:
        return BestScore(1.0, UNIT_OF_SCORE[env_id])
    return max(_scores_of_baselines(env_id.split("-")[1]), default=None)


def _scores_of_baselines(game: str) -> list[BestScore]:
    """Return the scores in docs/data/baselines.csv that neither Bayes nor the simulator's gradient made."""
    scores = []
    for row in _rows("baselines"):
        fair = row["agent"] != "Bayes" and row["trained by"] in ("-", "reward")
        cell = row.get(game, "-")
        if fair and cell != "-":
            scores.append(BestScore(float(cell.split()[0]), row["agent"]))
    return scores


KINDS: dict[str, Callable[[str, list[str]], list[str]]] = {
    "table": _table,
    "findings": _findings,
    "names": _names,
    "arguments": _arguments,
    "games": _games,
}


def take_results(directory: Path) -> None:
    """Copy the findings and figures of a run into docs, and the tables of ``quick`` and ``splits``."""
    from ldp_bench.report import Report

    path = DATA / "findings.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages())
    report = Report(directory)
    report.write()
    for section in report.sections:
        suite, results = section.suite, section.results
        if suite is None or results is None or not results.successes:
            raise ValueError(
                f"{directory} has no results of {section.name}: {' '.join(section.notes)}"
            )
        judged = [
            {"mark": verdict.mark if verdict else "·", "text": finding.text}
            for finding, verdict in section.findings
        ]
        known[suite.name] = {"title": suite.title, "claim": suite.claim, "findings": judged}
        if f"pictures/results/{suite.name}.png" in text:
            shutil.copy(
                directory / "figures" / f"{section.slug}.png", FIGURES / f"{suite.name}.png"
            )
        if suite.name == "num-labels":
            _draw_lead(results)
        if suite.name == "quick":
            _leaderboard(results).to_csv(DATA / "leaderboard.csv", index=False, lineterminator="\n")
        if suite.name == "splits":
            (scores,) = suite.tables(results).values()
            scores.to_csv(DATA / "splits.csv", index=False, lineterminator="\n")
    path.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _leaderboard(results: Results) -> DataFrame:
    """Risks of the learners by channel, those of Bayes with their intervals."""
    from ldp_bench.tables import grid

    table = grid(results).rename(columns={"Channel": "channel"})
    bayes = {result.channel: str(result.risk) for result in results.select(learner="bayes")}
    table["bayes"] = table["channel"].map(bayes)
    rows = results.frame.itertuples()
    deltas = {row.channel: f"{row.channel} (delta > 0)" for row in rows if row.delta}
    return table.replace({"channel": {"identity": "identity (no privacy)", **deltas}})


LEAD = {
    "asked for the label\n(randomized-response)": "randomized-response",
    "the paper's messages\n(laplace-single)": "laplace-single",
    "asked about hypotheses\n(split)": "split",
}
"""Lines of the picture of README.md: their labels, and the channels of Bayes."""


def _draw_lead(results: Results) -> None:
    """Draw the picture that README.md and the first page of the site open with."""
    from ldp_bench import figures

    def draw(results: Results) -> figures.Figure:
        lines = []
        for label, channel in LEAD.items():
            line = results.line("bayes", channel, lambda experiment: experiment.num_labels)
            x, y = [r.experiment.num_labels for r in line], [r.risk for r in line]
            lines.append(figures.Line(label, x, y, figures.colour(channel)))
        return figures.draw_lines(lines, "number of labels M", "total KL of Bayes (nats)")

    figures.in_style(draw, results).savefig(FIGURES / "labels.png", dpi=200)


def main() -> None:
    """Rewrite the pages, and print those that changed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, help="directory that `ldp-gym bench` wrote to")
    arguments = parser.parse_args()
    if arguments.results:
        take_results(arguments.results)
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (new := written(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
