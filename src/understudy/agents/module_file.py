"""Writes a policy as one Python file that plays alone: `understudy export --as module`.

The file holds the sources of the network, of the distributions and of `PolicyAgent`, as they are
here (`agents.flatten`), the policy's spec as an expression, and its weights. Nothing of a network
is written a second time, so what plays is what was trained (ADR 0044).
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from understudy import __version__
from understudy.agents.flatten import Flattened, flatten
from understudy.agents.weights_text import text_of
from understudy.core.spaces import Continuous, Discrete, MultiDiscrete
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec

FORMAT = 1
"""Of exported files: raised by a change that earlier readers do not understand."""
_WIDTH = 96
_LISTED = 100
_INDENT = "    "
_SUBSTITUTES = {
    "NUMPY": '''
class Ops:
    """The engine: networks are written over `ops.xp`, which is NumPy here."""

    xp = np


NUMPY = Ops()
''',
}
_POLICY = '''
@lru_cache(maxsize=1)
def policy() -> Policy:
    """The policy of this file. It never changes, so all agents share it."""
    return Policy(SPEC, weights_of(WEIGHTS), ABOUT["version"])
'''
_AGENT = '''
class Agent(PolicyAgent):
    """The agent of this file; each object plays its own matches."""

    def __init__(self, *, greedy: bool = {greedy}, seed: int | None = None) -> None:
        super().__init__(policy(), greedy=greedy, seed=seed)
'''
_USAGE = """
from agent import Agent                # agent.py: this file

agent = Agent()                        # Agent(greedy=True): the likeliest actions
action = agent.act(features)           # numbers in the order of agent.features
agent.reset()                          # before each further match
"""
_RESERVED = ("ABOUT", "SPEC", "WEIGHTS", "policy")


@dataclass(frozen=True)
class AgentSource:
    """Where a policy comes from, as far as its file says it."""

    run: str
    """The name of the run folder, without the folders above it."""
    game: str = ""
    """`brawl 4`: a game and the version of its rules; empty for a custom bot."""
    game_options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentClass:
    """What follows the network in a file: the class that users make, and what it needs."""

    name: str
    code: str
    usage: str
    """For the docstring of the file."""
    kind: str = "module"
    """What `--as` wrote it."""
    imports: tuple[str, ...] = ()
    roots: tuple[tuple[str, str], ...] = ()
    """Modules and names of definitions of ours that the code uses besides `PolicyAgent`."""
    methods: tuple[str, ...] = ()
    """Those that the code calls."""


def plain_agent(*, greedy: bool) -> AgentClass:
    """The class `Agent` of `--as module`."""
    return AgentClass(name="Agent", code=_AGENT.format(greedy=greedy), usage=_USAGE)


def module_text(
    policy: Policy, source: AgentSource, agent: AgentClass, *, float16: bool = False
) -> str:
    """The text of a file that plays this policy with NumPy alone."""
    flat = _sources(policy.spec, agent)
    taken = {agent.name, *_RESERVED} & set(flat.names.values())
    if taken:
        raise ValueError(f"exported files use the name {taken.pop()} themselves: rename it")
    about = {
        "format": FORMAT,
        "as": agent.kind,
        "run": source.run,
        "version": policy.version,
        "game": source.game,
        "game_options": source.game_options,
        "float16": float16,
        "understudy": __version__,
    }
    imports = {*flat.imports, *agent.imports, "import numpy as np"}
    parts = [
        _head(policy, source, agent, float16=float16),
        _import_block({*imports, "from functools import lru_cache"}),
        "ABOUT = {\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in about.items()) + "}",
        flat.code,
        f"\nSPEC = {_constructed(policy.spec)}\n",
        _POLICY.strip() + "\n",
        agent.code.strip() + "\n",
        f'WEIGHTS = """\n{text_of(policy.weights, float16=float16)}\n"""',
    ]
    return "\n\n".join(parts) + "\n"


def _sources(spec: PolicySpec, agent: AgentClass) -> Flattened:
    """The sources that this network and these actions need."""
    classes = (type(spec.network), type(spec.actions), Policy, PolicySpec)
    return flatten(
        [
            *((one.__module__, one.__name__) for one in classes),
            ("understudy.agents.weights_text", "weights_of"),
            ("understudy.agents.agent", "PolicyAgent"),
            *agent.roots,
        ],
        methods=("act", "reset", "features", "actions", "version", *agent.methods),
        substitutes=_SUBSTITUTES,
        never=() if isinstance(spec.actions, Continuous) else ("Continuous",),
    )


def _head(policy: Policy, source: AgentSource, agent: AgentClass, *, float16: bool) -> str:
    """The docstring of the file; no name can break out of it."""
    spec = policy.spec
    made_for = f" for {source.game}" if source.game else ""
    options = ", ".join(f"{key}={value}" for key, value in source.game_options.items())
    count = sum(np.asarray(one).size for one in policy.weights.params.values())
    stored = ", rounded to float16" if float16 else ""
    facts = {
        "Run": f"{source.run}, version {policy.version}",
        "Game": (source.game or "a custom bot") + (f" ({options})" if options else ""),
        "Features": f"{len(spec.features)}: {_listed(spec.features)}",
        "Actions": _described(spec.actions),
        "Network": f"{type(spec.network).__name__}, {count:,} parameters{stored}",
    }
    lines = [
        _safe(
            f"An agent{made_for} in one file: it needs Python 3.10 or newer, NumPy, nothing else."
        ),
        "",
        *(f"    {line}".rstrip() for line in agent.usage.strip().split("\n")),
        "",
    ]
    for label, text in facts.items():
        body = textwrap.wrap(_safe(text), _WIDTH - 10)
        lines += [f"{(label if at == 0 else ''):<10}{line}" for at, line in enumerate(body)]
    lines += [
        "",
        f"Written by `understudy export` (Understudy {__version__}) from the sources that trained",
        "the network: change those and export again, rather than this file.",
        "SPDX-License-Identifier: Apache-2.0 (the code; the weights are the run's owner's).",
    ]
    return '"""' + "\n".join(lines) + '\n"""'


def _described(space: Any) -> str:
    """An action space in words."""
    if isinstance(space, Discrete):
        return f"one of {len(space.names)}: {_listed(space.names)}"
    if isinstance(space, MultiDiscrete):
        return f"{len(space.sizes)} choices, with {', '.join(map(str, space.sizes))} options"
    if isinstance(space, Continuous):
        return f"{len(space.names)} real numbers: {_listed(space.names)}"
    return f"{len(space.names)} switches: {_listed(space.names)}"


def _listed(names: tuple[str, ...]) -> str:
    """The first of them; `SPEC` in the file has all."""
    more = " ..." if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _safe(text: str) -> str:
    """Text that cannot end the docstring that it is put into."""
    printable = "".join(one if one.isprintable() else " " for one in text)
    return printable.replace("\\", "/").replace('"', "'")


def _import_block(statements: set[str]) -> str:
    """Import statements in the usual order, with all names of one module in one."""
    plain: set[str] = set()
    named: dict[str, set[str]] = {}
    for line in statements:
        module, _, names = line.removeprefix("from ").partition(" import ")
        if names:
            named.setdefault(module, set()).update(names.split(", "))
        else:
            plain.add(line)
    plain.discard("import numpy as np")
    froms = [f"from {one} import {', '.join(sorted(named[one]))}" for one in sorted(named)]
    lines = ["from __future__ import annotations", "", *sorted(plain), *froms, ""]
    return "\n".join([*lines, "import numpy as np"])


def _constructed(struct: Any, indent: str = "") -> str:
    """A struct as an expression."""
    inner = indent + _INDENT
    lines = []
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        text = _constructed(value, inner) if isinstance(value, msgspec.Struct) else repr(value)
        if isinstance(value, tuple) and len(text) > _WIDTH - len(inner) - len(name):
            text = f"(\n{_filled(value, inner + _INDENT)}\n{inner})"
        lines.append(f"{inner}{name}={text},\n")
    return f"{type(struct).__name__}(\n{''.join(lines)}{indent})"


def _filled(values: tuple[Any, ...], indent: str) -> str:
    """Literals on lines as full as they fit."""
    lines, line = [], indent
    for value in values:
        item = f"{value!r}, "
        if len(line) + len(item) > _WIDTH and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += item
    return "\n".join([*lines, line.rstrip()])
