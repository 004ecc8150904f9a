"""The reference: a page for everything that has a name, made from the registries.

A new channel appears in the documentation when it is registered; nothing has to be written twice.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import griffe

import ldp_agents
import ldp_gym
from ldp_gym.channels.base import Channel
from ldp_gym.cli.catalogue import headings
from ldp_gym.core.registry import Registry

_SUITE_MODULES = ("paper", "comparisons", "own_game", "real_labels")

ENVIRONMENTS = {
    "LDPDist-v0": "ldp_gym.envs.single.LDPDistEnv",
    "LDPDist-v0 (vector)": "ldp_gym.envs.vector.LDPDistVectorEnv",
}
MODULES = {
    "The environment's arguments": [
        "ldp_gym.engine.rules.Rules",
        "ldp_gym.engine.game.Game",
        "ldp_gym.core.simplex.Simplex",
    ],
    "Wrappers for RL": ["ldp_gym.wrappers"],
    "evaluate": ["ldp_gym.evaluation"],
    "Estimates from a batch": ["ldp_gym.bench.online_to_batch"],
    "Hard contexts": ["ldp_gym.bench.search"],
    "Intervals": ["ldp_gym.core.intervals"],
    "The benchmark": [
        "ldp_gym.bench.runner",
        "ldp_gym.bench.suites.base",
        *[f"ldp_gym.bench.suites.{name}" for name in _SUITE_MODULES],
        "ldp_gym.bench.experiment",
        "ldp_gym.bench.results",
        "ldp_gym.bench.statistics",
        "ldp_gym.bench.findings",
        "ldp_gym.bench.store",
        "ldp_gym.bench.contained",
    ],
    "Learned baselines": [
        "ldp_agents.rl",
        "ldp_agents.rl.algorithms",
        "ldp_agents.rl.training",
        "ldp_agents.rl.shipping",
        "ldp_agents.rl.model",
        "ldp_agents.rl.vec_env",
        "ldp_agents.rl.saved",
        "ldp_agents.rl.scope",
    ],
    "Splits and datasets": ["ldp_gym.bench.splits", "ldp_gym.datasets"],
    "Bounds and limits": ["ldp_gym.theory"],
    "Audits": ["ldp_gym.privacy"],
    "Exact tables": ["ldp_gym.privacy.exact_table"],
    "Contract checks": ["ldp_gym.testing"],
    "Base classes": [
        "ldp_gym.hypotheses.base.HypothesisClass",
        "ldp_gym.natures.base",
        "ldp_gym.truths.base",
        "ldp_gym.channels.base.Channel",
        "ldp_gym.core.errors",
        "ldp_gym.engine.learners",
        "ldp_agents.base",
        "ldp_agents.likelihood",
        "ldp_agents.make",
    ],
    "The mathematics": [
        "ldp_gym.channels.clipping",
        "ldp_gym.engine.posterior",
        "ldp_gym.core.divergences",
        "ldp_gym.channels.accounting",
    ],
    "Rendering": ["ldp_gym.envs.rendering"],
}
REGISTRIES: dict[str, tuple[Registry[Any], str]] = {
    "classes": (ldp_gym.HYPOTHESES, "hypotheses"),
    "natures": (ldp_gym.NATURES, "nature"),
    "truths": (ldp_gym.TRUTHS, "truth"),
    "channels": (ldp_gym.CHANNELS, "channel"),
    "learners": (ldp_gym.LEARNERS, "learner"),
}
# Classes that have no name, because they are made from what a user has.
UNNAMED = {
    "classes": {
        "a table": ldp_gym.hypotheses.Table,
        "callables": ldp_gym.hypotheses.Callables,
        "classifiers": ldp_gym.hypotheses.Classifiers,
    }
}


def pages() -> Iterator[tuple[str, str, str, str]]:
    """Every generated page: its section, its title, its address and its text."""
    yield "Public names", "Public names", "reference/names.md", _names()
    for title, path in ENVIRONMENTS.items():
        yield "Environments", title, f"reference/environments/{_slug(title)}.md", _page(title, [path])
    for kind, (registry, argument) in REGISTRIES.items():
        makers = {name: registry[name] for name in registry.names()}
        makers = {name: maker for name, maker in makers.items() if maker.__module__.startswith("ldp_")}
        others = UNNAMED.get(kind, {})
        yield kind.capitalize(), kind.capitalize(), f"reference/{kind}/index.md", _index(kind, makers, others)
        for name, maker in {**makers, **others}.items():
            facts = _facts(name, maker, argument) if name in makers else ""
            text = _page(name, [f"{maker.__module__}.{maker.__qualname__}"], facts)
            yield kind.capitalize(), name, f"reference/{kind}/{_slug(name)}.md", text
    for title, paths in MODULES.items():
        yield "Modules", title, f"reference/modules/{_slug(title)}.md", _page(title, paths)


def _slug(title: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def _page(title: str, paths: list[str], facts: str = "") -> str:
    paths = [module for path in paths for module in _modules(path)]
    # The lines that implement an equation are often in a method that its base class documents.
    options = "    options:\n      show_if_no_docstring: true\n" if "channels." in paths[0] else ""
    return "\n".join([f"# {title}", "", facts, *[f"\n::: {path}\n{options}" for path in paths]])


def _modules(path: str) -> list[str]:
    """The modules of a package; anything else as it is."""
    found = sys.modules.get(path)
    if not hasattr(found, "__path__"):
        return [path]
    return [f"{path}.{module.name}" for module in pkgutil.iter_modules(found.__path__)]  # type: ignore[union-attr]


def _names() -> str:
    """All that the two packages export, in one place."""
    lines = ["# Public names", "", "What `import ldp_gym` and `import ldp_agents` offer.", ""]
    for package in (ldp_gym, ldp_agents):
        lines += [f"## {package.__name__}", "", "| name | |", "|---|---|"]
        for name in package.__all__:
            thing = getattr(package, name)
            if isinstance(thing, Registry):
                known = ", ".join(f"`{one}`" for one in thing.names())
                lines.append(f"| `{package.__name__}.{name}` | every {thing.kind} by its name: {known} |")
            else:
                lines.append(f"| `{package.__name__}.{name}` | {_summary(thing)} |")
        lines.append("")
    return "\n".join(lines)


def _summary(thing: Any) -> str:
    summary = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", summary)  # :class:`a.B` to `B`


def _index(kind: str, makers: dict[str, Callable[..., Any]], others: dict[str, type]) -> str:
    lines = [f"# {kind.capitalize()}", ""]
    for heading, names in headings(kind, REGISTRIES[kind][0]).items():
        lines += [] if heading == kind else [f"## {heading.capitalize()}", ""]
        lines += ["| name | |", "|---|---|"]
        for name in [*[name for name in names if name in makers], *others]:
            shown = f"`{name}`" if name in makers else name
            lines.append(f"| [{shown}]({_slug(name)}.md) | {_summary({**makers, **others}[name])} |")
        lines.append("")
    return "\n".join(lines)


def _facts(name: str, maker: Callable[..., Any], argument: str) -> str:
    """How to ask for a thing by its name, what it is like, and which options it takes."""
    if argument == "learner":
        call = f'ldp_agents.make("{name}", env)'
    else:
        delta = ", delta=1e-5" if argument == "channel" and not maker.pure else ""  # type: ignore[attr-defined]
        call = f'gym.make("LDPDist-v0", {argument}="{name}"{delta})'
    lines = [f"By name: `{call}`.", ""]
    if isinstance(maker, type) and issubclass(maker, Channel):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)
            channel = maker(4, 6, 100, delta=0.0 if maker.pure else 1e-5)
        privacy = "pure" if maker.pure else "approximate, needs delta > 0"
        lines += [
            f"| privacy | {'none' if name == 'identity' else privacy} |",
            "|---|---|",
            f"| adaptive | {'yes: it reads the public posterior' if maker.adaptive else 'no'} |",
            f"| a message has | {'losses, one per hypothesis' if maker.reveals_losses else 'no losses'} |",
            f"| its space at K = 4, M = 6 | `{channel.message_space}` |",
            "",
        ]
    return "\n".join(lines + _options(maker, argument))


# What the game says itself, so that it is no option.
GAME = {"num_hypotheses", "num_labels", "context_dim", "class_seed", "horizon", "epsilon", "delta", "game"}


def _options(maker: Callable[..., Any], argument: str) -> list[str]:
    parameters = [p for p in inspect.signature(maker).parameters.values() if p.name not in GAME]
    parameters = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not parameters:
        return []
    said = {}
    for cls in reversed(inspect.getmro(maker)):  # type: ignore[arg-type]
        text = griffe.Docstring(inspect.cleandoc(cls.__doc__ or ""))
        for section in griffe.parse_google(text, warnings=False):
            if section.kind is griffe.DocstringSectionKind.parameters:
                said.update({item.name: " ".join(item.description.split()) for item in section.value})
    where = "keyword arguments" if argument == "learner" else f"`{argument}_kwargs`"
    lines = [f"Options, as {where}:", "", "| option | default | |", "|---|---|---|"]
    for p in parameters:
        default = "required" if p.default is p.empty else f"`{p.default!r}`"
        lines.append(f"| `{p.name}` | {default} | {said.get(p.name, '')} |")
    return [*lines, ""]


# -- MkDocs calls these -------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Append the reference to the navigation."""
    sections: dict[str, list[Any]] = {}
    for section, title, address, _ in pages():
        entry = address if address.endswith("index.md") else {title: address}
        sections.setdefault(section, []).append(entry)
    names = sections.pop("Public names")
    reference = [*names, *[{section: entries} for section, entries in sections.items()]]
    config["nav"].append({"Reference": reference})
    return config


NAME = re.compile(r"(?<!\[)`((?:ldp_gym|ldp_agents)(?:\.\w+)+)`")
PATH = re.compile(r"(?<!\[)`((?:tests|examples)/[\w/]+\.py)`")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Link what a page names in full, such as `ldp_gym.theory.wma_bound`, to its place in the reference."""
    if page.file.src_uri.startswith("reference/") and page.file.src_uri != "reference/names.md":
        return markdown
    code = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)
    prose, fences = code.split(markdown), code.findall(markdown)
    linked = [
        PATH.sub(lambda path: f"<code>{path[1].replace('/', '/<wbr>')}</code>", NAME.sub(_autoref, part))
        for part in prose
    ]
    return "".join(part + fence for part, fence in zip(linked, [*fences, ""], strict=True))


def _autoref(name: re.Match[str]) -> str:
    package, first, *rest = name[1].split(".")
    exported = getattr({"ldp_gym": ldp_gym, "ldp_agents": ldp_agents}[package], first, None)
    path = name[1]
    if isinstance(exported, type) or inspect.isfunction(exported):
        path = ".".join([exported.__module__, exported.__qualname__, *rest])
    elif rest and inspect.ismodule(exported) and isinstance(member := getattr(exported, rest[0], None), type):
        path = ".".join([member.__module__, member.__qualname__, *rest[1:]])
    shown = name[1].replace(".", ".<wbr>")  # where a narrow table may break it
    return f'<autoref optional identifier="{path}"><code>{shown}</code></autoref>'


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to those that are written by hand."""
    from mkdocs.structure.files import File

    for _, _, address, text in pages():
        files.append(File.generated(config, address, content=text))
    return files
