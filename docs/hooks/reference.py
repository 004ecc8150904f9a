"""Reference pages of every environment, registered part and module.

A new channel appears on the site when it is registered, and a new module when it is written.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import griffe
import gymnasium as gym

import ldp_agents
import ldp_gym
from ldp_bench.commands.catalogue import headings
from ldp_gym.channels.base import Channel
from ldp_gym.core.registry import Registry, read_signature

sys.path.insert(0, str(Path(__file__).parent))
import roles

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
    shown = set()  # objects that have their own pages
    for path, ids in _environments().items():
        title = ids[0] + (" (vector)" if "Vector" in path or "vector" in path else "")
        facts = "By id: " + ", ".join(f"`{name}`" for name in ids) + "."
        module, _, name = path.rpartition(".")
        facts += "\n\n" + "\n".join(_arguments(getattr(importlib.import_module(module), name)))
        shown.add(path)
        yield (
            "Environments",
            title,
            f"reference/environments/{_slug(title)}.md",
            _page(title, [path], facts),
        )
    for kind, (registry, argument) in REGISTRIES.items():
        makers = {name: registry[name] for name in registry}
        makers = {
            name: maker for name, maker in makers.items() if maker.__module__.startswith("ldp_")
        }
        others = UNNAMED.get(kind, {})
        yield (
            kind.capitalize(),
            kind.capitalize(),
            f"reference/{kind}/index.md",
            _index(kind, makers, others),
        )
        for name, maker in {**makers, **others}.items():
            path = f"{maker.__module__}.{maker.__qualname__}"
            shown.add(path)
            facts = _facts(name, maker, argument) if name in makers else ""
            text = _page(name, [path], facts)
            yield kind.capitalize(), name, f"reference/{kind}/{_slug(name)}.md", text
    for room, modules in _rooms().items():
        if paths := [path for module in modules for path in _documented(module, shown)]:
            yield "Modules", room, f"reference/modules/{_slug(room)}.md", _page(room, paths)


def _environments() -> dict[str, list[str]]:
    """Ids by the environment that they make, as a dotted path; single ones and vector ones."""
    found: dict[str, list[str]] = {}
    for spec in gym.registry.values():
        for entry in (spec.entry_point, spec.vector_entry_point):
            if isinstance(entry, str) and entry.startswith("ldp_gym"):
                found.setdefault(entry.replace(":", "."), []).append(spec.id)
    return found


def _rooms() -> dict[str, list[str]]:
    """Packages, folders and single modules, each with all public modules in it."""
    rooms: dict[str, list[str]] = {}
    for package in (ldp_gym, ldp_agents):
        root = package.__name__
        rooms[root] = [root]
        for module in pkgutil.walk_packages(package.__path__, f"{root}."):
            if not any(part.startswith("_") for part in module.name.split(".")):
                rooms.setdefault(".".join(module.name.split(".")[:2]), []).append(module.name)
    return rooms


def _documented(module: str, shown: set[str]) -> list[str]:
    """The parts of a module to show: all of it, or the public objects that have no page of their own."""
    found = importlib.import_module(module)
    members = [
        f"{module}.{name}"
        for name, thing in vars(found).items()
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module
        and not name.startswith("_")
    ]
    if hasattr(found, "__path__") or shown.intersection(members):
        return [path for path in members if path not in shown]
    return [module]


def _slug(title: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def _page(title: str, paths: list[str], facts: str = "") -> str:
    # The lines that implement an equation are often in a method that its base class documents.
    option = "show_if_no_docstring: true" if "channels." in paths[0] else ""
    option = "show_signature: false" if "By id" in facts else option
    blocks = []
    for path in paths:
        options = [f"      {line}" for line in (option, *_order(path)) if line]
        blocks.append(
            "\n".join([f"\n::: {path}", *(["    options:", *options] if options else []), ""])
        )
    return "\n".join([f"# {title}", "", facts, *blocks])


def _order(path: str) -> list[str]:
    """Options that show a module's functions before its classes, most of which are their results."""
    if path not in sys.modules:
        return []
    body = griffe.visit(path, Path("."), inspect.getsource(sys.modules[path])).members.values()
    shown = [one for one in body if not one.is_alias and not one.name.startswith("_")]
    shown = [one for one in shown if one.docstring or not one.is_attribute]
    names = [one.name for one in sorted(shown, key=lambda one: not one.is_function)]
    return ["group_by_category: false", f"members: [{', '.join(names)}]"] if names else []


def _names() -> str:
    """All that the two packages export, in one place."""
    lines = ["# Public names", "", "What `import ldp_gym` and `import ldp_agents` offer.", ""]
    for package in (ldp_gym, ldp_agents):
        lines += [f"## {package.__name__}", "", "| name | |", "|---|---|"]
        for name in package.__all__:
            thing = getattr(package, name)
            if isinstance(thing, Registry):
                known = ", ".join(f"`{one}`" for one in thing)
                lines.append(
                    f"| `{package.__name__}.{name}` | every {thing.kind} by its name: {known} |"
                )
            else:
                lines.append(f"| `{package.__name__}.{name}` | {_summary(thing)} |")
        lines.append("")
    return "\n".join(lines)


def _summary(thing: Any) -> str:
    summary = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    return _cell(summary)


def _cell(text: str) -> str:
    """Text for a cell of a table: without pipes, and with :class:`a.B` as `B`."""
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text.replace("|", "\\|"))


def _index(kind: str, makers: dict[str, Callable[..., Any]], others: dict[str, type]) -> str:
    lines = [f"# {kind.capitalize()}", ""]
    for heading, names in headings(kind, REGISTRIES[kind][0]).items():
        lines += [] if heading == kind else [f"## {heading[0].upper()}{heading[1:]}", ""]
        lines += ["| name | |", "|---|---|"]
        for name in [*[name for name in names if name in makers], *others]:
            shown = f"`{name}`" if name in makers else name
            lines.append(
                f"| [{shown}]({_slug(name)}.md) | {_summary({**makers, **others}[name])} |"
            )
        lines.append("")
    return "\n".join(lines)


def _facts(name: str, maker: Callable[..., Any], argument: str) -> str:
    """Name, description and options of a registered thing."""
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
GAME = {
    "num_hypotheses",
    "num_labels",
    "context_dim",
    "class_seed",
    "horizon",
    "epsilon",
    "delta",
    "game",
}


def _options(maker: Callable[..., Any], argument: str) -> list[str]:
    parameters = [p for p in read_signature(maker)[0].values() if p.name not in GAME]
    if not parameters:
        return []
    documents = [cls.__doc__ or "" for cls in reversed(inspect.getmro(maker))]  # type: ignore[arg-type]
    where = "keyword arguments" if argument == "learner" else f"`{argument}_kwargs`"
    return [f"Options, as {where}:", "", *_parameters(parameters, documents)]


def _arguments(env: Any) -> list[str]:
    """Arguments of an environment, which come from its class of rules."""
    parameters = list(inspect.signature(env).parameters.values())
    return ["Arguments:", "", *_parameters(parameters, [env.__init__.__doc__])]


def _parameters(parameters: list[inspect.Parameter], documents: list[str]) -> list[str]:
    """Lines of a table of parameters: name, default, and what the documents say."""
    said = {}
    for document in documents:
        for section in griffe.parse_google(
            griffe.Docstring(inspect.cleandoc(document)), warnings=False
        ):
            if section.kind is griffe.DocstringSectionKind.parameters:
                said.update(
                    {item.name: " ".join(item.description.split()) for item in section.value}
                )
    lines = ["| name | default | |", "|---|---|---|"]
    for p in parameters:
        default = "required" if p.default is p.empty else f"`{p.default!r}`"
        lines.append(f"| `{p.name}` | {default} | {_cell(said.get(p.name, ''))} |")
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
        PATH.sub(
            lambda path: f"<code>{path[1].replace('/', '/<wbr>')}</code>", NAME.sub(_autoref, part)
        )
        for part in prose
    ]
    return "".join(part + fence for part, fence in zip(linked, [*fences, ""], strict=True))


def _autoref(name: re.Match[str]) -> str:
    return roles.link(name[1], name[1].replace(".", ".<wbr>"))  # where a narrow table may break it


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to those that are written by hand."""
    from mkdocs.structure.files import File

    for _, _, address, text in pages():
        files.append(File.generated(config, address, content=text))
    return files
