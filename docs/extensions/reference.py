"""Pages of the reference, written before the site is built: environments, registered parts, modules.

A new channel appears on the site when it is registered, and a new module when it is written.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
from sphinx.application import Sphinx

import ldp_agents
import ldp_bench
import ldp_gym
from ldp_bench.commands.catalogue import headings
from ldp_gym.channels.base import Channel
from ldp_gym.core.registry import PACKAGES, Registry, read_signature
from ldp_gym.hypotheses import Callables, Classifiers, Table

FOLDER = Path(__file__).parents[1] / "reference"
"""Folder of the pages; git ignores it."""


class Kind(NamedTuple):
    """A kind of part that has a registry."""

    title: str
    argument: str  # keyword argument that takes a name of this kind
    registry: Registry[Any]
    unnamed: dict[str, type]  # classes without a name: they are made from what a user has


KINDS = [
    Kind(
        "classes",
        "hypotheses",
        ldp_gym.HYPOTHESES,
        {"a table": Table, "callables": Callables, "classifiers": Classifiers},
    ),
    Kind("natures", "nature", ldp_gym.NATURES, {}),
    Kind("truths", "truth", ldp_gym.TRUTHS, {}),
    Kind("channels", "channel", ldp_gym.CHANNELS, {}),
    Kind("learners", "learner", ldp_gym.LEARNERS, {}),
]

DECIDED_BY_THE_GAME = {
    "num_hypotheses",
    "num_labels",
    "context_dim",
    "class_seed",
    "horizon",
    "epsilon",
    "delta",
    "game",
}
"""Parameters that a part gets from the game: they are no options of its own."""


def pages() -> dict[str, str]:
    """Return the Markdown of every page of the reference, by its name."""
    texts = {"environments": _environments_page()}
    for kind in KINDS:
        texts[kind.title] = _kind_page(kind)

    shown_elsewhere = set(re.findall(r"autoclass:: (\S+)", "".join(texts.values())))
    rooms = _rooms()
    for room, modules in rooms.items():
        texts[room] = _room_page(room, modules, shown_elsewhere)

    texts["index"] = _index_page([*rooms])
    return texts


def _index_page(rooms: list[str]) -> str:
    """Return the page of all public names, with the menu of the reference."""
    lines = ["# Reference", "", "```{toctree}", ":hidden:", "", "environments"]
    lines += [kind.title for kind in KINDS]
    lines += [*rooms, "```", ""]
    for package in (ldp_gym, ldp_agents, ldp_bench):
        lines += [f"## Public names of {package.__name__}", "", "| name | |", "|---|---|"]
        for name in package.__all__:
            item = getattr(package, name)
            if isinstance(item, Registry):
                known = ", ".join(f"`{part}`" for part in item)
                summary = f"every {item.kind} by its name: {known}"
            else:
                summary = _summary(item)
            lines.append(f"| `{package.__name__}.{name}` | {summary} |")
        lines.append("")
    return "\n".join(lines)


# -- Environments --------------------------------------------------------------------------------


def _environments_page() -> str:
    """Return the page of all environments: ids, arguments and documentation."""
    lines = ["# Environments", ""]
    for path, ids in _ids_by_environment().items():
        module_name, _, class_name = path.rpartition(".")
        environment = getattr(importlib.import_module(module_name), class_name)
        lines += [
            f"## {class_name}",
            "",
            "By id: " + ", ".join(f"`{one}`" for one in ids) + ".",
            "",
        ]
        lines += _arguments(environment)
        lines += _autodoc("autoclass", path)
    return "\n".join(lines)


def _ids_by_environment() -> dict[str, list[str]]:
    """Return the ids that make an environment, by its dotted path; single and vector ones."""
    ids: dict[str, list[str]] = {}
    for spec in gym.registry.values():
        for entry_point in (spec.entry_point, spec.vector_entry_point):
            if isinstance(entry_point, str) and entry_point.startswith("ldp_gym"):
                path = entry_point.replace(":", ".")
                ids.setdefault(path, []).append(spec.id)
    return ids


def _arguments(environment: Any) -> list[str]:
    """Return a table of an environment's arguments."""
    parameters = [*inspect.signature(environment).parameters.values()]
    sentences = _argument_sentences(environment.__init__.__doc__ or "")
    return ["Arguments:", "", *_parameter_table(parameters, sentences)]


# -- Registered parts ----------------------------------------------------------------------------


def _kind_page(kind: Kind) -> str:
    """Return the page of a kind of part: a list, then a section for each."""
    makers = {name: kind.registry[name] for name in kind.registry}
    ours = {name: maker for name, maker in makers.items() if _is_ours(maker)}

    lines = [f"# {kind.title.capitalize()}", ""]
    for heading, names in headings(kind.title, kind.registry).items():
        if heading != kind.title:
            lines += [f"**{heading[0].upper()}{heading[1:]}**", ""]
        lines += ["| name | |", "|---|---|"]
        for name in names:
            if name in ours:
                lines.append(f"| [`{name}`](#{name}) | {_summary(ours[name])} |")
        lines.append("")

    for name, maker in ours.items():
        lines += [f"## `{name}`", "", *_facts(name, maker, kind.argument)]
        lines += _autodoc_of(maker)
    for title, maker in kind.unnamed.items():
        lines += [f"## {title.capitalize()}", "", *_autodoc_of(maker)]
    return "\n".join(lines)


def _is_ours(maker: Callable[..., Any]) -> bool:
    return maker.__module__.partition(".")[0] in PACKAGES


def _facts(name: str, maker: Callable[..., Any], argument: str) -> list[str]:
    """Return how to ask for a part by its name, a channel's properties, and its options."""
    if argument == "learner":
        call = f'ldp_agents.make("{name}", env)'
    elif isinstance(maker, type) and issubclass(maker, Channel) and not maker.pure:
        call = f'gym.make("LDPDist-v0", channel="{name}", delta=1e-5)'
    else:
        call = f'gym.make("LDPDist-v0", {argument}="{name}")'
    lines = [f"By name: `{call}`.", ""]

    if isinstance(maker, type) and issubclass(maker, Channel):
        lines += _channel_properties(name, maker)

    parameters = [
        parameter
        for parameter in read_signature(maker)[0].values()
        if parameter.name not in DECIDED_BY_THE_GAME
    ]
    if parameters:
        where = "keyword arguments" if argument == "learner" else f"`{argument}_kwargs`"
        documents = [owner.__doc__ or "" for owner in reversed(inspect.getmro(maker))]  # type: ignore[arg-type]
        sentences = _argument_sentences("\n".join(map(inspect.cleandoc, documents)))
        lines += [f"Options, as {where}:", "", *_parameter_table(parameters, sentences)]
    return lines


def _channel_properties(name: str, channel_class: type[Channel]) -> list[str]:
    """Return a table of what a channel promises and sends."""
    delta = 0.0 if channel_class.pure else 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)
        channel = channel_class(4, 6, 100, delta=delta)

    if name == "identity":
        privacy = "none"
    elif channel_class.pure:
        privacy = "pure"
    else:
        privacy = "approximate, needs delta > 0"
    adaptive = "yes: it reads the public posterior" if channel_class.adaptive else "no"
    content = "losses, one per hypothesis" if channel_class.reveals_losses else "no losses"
    return [
        f"| privacy | {privacy} |",
        "|---|---|",
        f"| adaptive | {adaptive} |",
        f"| a message has | {content} |",
        f"| its space at K = 4, M = 6 | `{channel.message_space}` |",
        "",
    ]


# -- Modules -------------------------------------------------------------------------------------


def _rooms() -> dict[str, list[str]]:
    """Return the public modules of every folder of the packages, and of every module beside them."""
    rooms: dict[str, list[str]] = {}
    for package in (ldp_gym, ldp_agents, ldp_bench):
        root = package.__name__
        for module in pkgutil.walk_packages(package.__path__, f"{root}."):
            parts = module.name.split(".")
            if not any(part.startswith("_") for part in parts):
                rooms.setdefault(".".join(parts[:2]), []).append(module.name)
    return rooms


def _room_page(room: str, modules: list[str], shown_elsewhere: set[str]) -> str:
    """Return the page of a room, with what has no place of its own yet."""
    lines = [f"# {room}", ""]
    for module in modules:
        elsewhere = [
            path.rpartition(".")[2] for path in shown_elsewhere if path.rpartition(".")[0] == module
        ]
        options = [":members:", ":ignore-module-all:"]
        if elsewhere:
            options.append(f":exclude-members: {', '.join(sorted(elsewhere))}")
        if module != room:
            lines += [f"## {module}", ""]
        lines += _autodoc("automodule", module, options)
    return "\n".join(lines)


# -- Parts of pages ------------------------------------------------------------------------------


def _autodoc(directive: str, path: str, options: list[str] | None = None) -> list[str]:
    """Return the block that has autodoc document an object."""
    indented = [f"   {option}" for option in options or [":members:"]]
    return ["```{eval-rst}", f".. {directive}:: {path}", *indented, "```", ""]


def _autodoc_of(maker: Callable[..., Any]) -> list[str]:
    """Return the block that documents a class or a function."""
    path = f"{maker.__module__}.{maker.__qualname__}"
    if isinstance(maker, type):
        return _autodoc("autoclass", path)
    return _autodoc("autofunction", path, [])


_ARGUMENT = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)
"""An argument and its sentences in a docstring's section of arguments."""


def _argument_sentences(docstring: str) -> dict[str, str]:
    """Return what a docstring says about each argument, on one line."""
    cleaned = inspect.cleandoc(docstring)
    return {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(cleaned)}


def _parameter_table(
    parameters: list[inspect.Parameter], sentences: dict[str, str]
) -> Iterator[str]:
    """Yield the lines of a table of parameters: name, default, and sentence."""
    yield from ["| name | default | |", "|---|---|---|"]
    for parameter in parameters:
        default = "required"
        if parameter.default is not parameter.empty:
            default = f"`{parameter.default!r}`"
        sentence = _in_a_cell(sentences.get(parameter.name, ""))
        yield f"| `{parameter.name}` | {default} | {sentence} |"
    yield ""


def _summary(item: Any) -> str:
    """Return the first paragraph of an object's documentation, for a cell of a table."""
    paragraph = (inspect.getdoc(item) or "").split("\n\n")[0]
    return _in_a_cell(" ".join(paragraph.split()))


def _in_a_cell(text: str) -> str:
    """Return text without what a cell of a Markdown table does not take: pipes, and roles."""
    without_roles = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return without_roles.replace("|", "\\|").replace("``", "`")


def write_pages(app: Sphinx) -> None:
    """Write the pages into their folder; one that is unchanged is not built again."""
    texts = pages()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        if path.stem not in texts:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, text in texts.items():
        path = FOLDER / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Have Sphinx write the pages before it reads any."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
