"""What holds the rooms together: who needs what, what is public, what is documented.

`python tests/test_architecture.py` writes docs/settings.md anew.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import understudy
from understudy.core.config import Config
from understudy.core.config.descriptions import settings
from understudy.core.config.section import Section
from understudy.deprecated_paths import MOVED, RENAMED

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "understudy"
SETTINGS = ROOT / "docs" / "settings.md"

_EDGE = """
import json, sys

class Nothing_else:
    allowed = sys.stdlib_module_names | {"numpy", "msgspec", "understudy"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.allowed:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Nothing_else())
import understudy.sc2
from understudy import Understudy
with Understudy.open(
    sys.argv[1], features=["a", "b"], actions=["x", "y"], mode="learn", learner="off"
) as mind:
    with mind.match(opponent="nobody") as match:
        for step in range(5):
            match.decide([step, 1.0], legal=[True, True])
            match.reward(0.1)
        assert match.finish("victory")
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def run_python(code: str, *args: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_a_bot_needs_numpy_and_msgspec_alone(tmp_path: Path) -> None:
    loaded = set(json.loads(run_python(_EDGE, tmp_path)))
    assert {"numpy", "msgspec", "understudy"} <= loaded
    assert not loaded & {"jax", "optax", "typer", "click", "rich", "filelock", "psutil"}
    assert len(list((tmp_path / "buffer").glob("*.npz"))) == 1


def test_importing_understudy_imports_nothing_heavy() -> None:
    code = "import sys, understudy; print('numpy' in sys.modules, 'msgspec' in sys.modules)"
    assert run_python(code) == "False False\n"


def test_public_names() -> None:
    assert sorted(understudy.__all__) == [
        "Config",
        "Discrete",
        "Mlp",
        "MultiBinary",
        "MultiDiscrete",
        "Transformer",
        "Understudy",
        "UnderstudyError",
        "__version__",
        "load_agent",
        "with_values",
    ]
    for name in understudy.__all__:
        assert getattr(understudy, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Overstudy'"):
        _ = understudy.Overstudy


def test_the_version_is_said_once() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{understudy.__version__}"' in project


def test_no_pickle_anywhere() -> None:
    """A pickled file can run any code when it is read."""
    for path in modules():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"allow_pickle\s*=\s*True", text), path
        for node in ast.walk(ast.parse(text)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            tops = {name.partition(".")[0] for name in names}
            assert not tops & {"pickle", "marshal", "shelve", "dill", "cloudpickle"}, path
            if isinstance(node, ast.Attribute) and node.attr == "load":
                assert not (isinstance(node.value, ast.Name) and node.value.id == "np"), (
                    f"{path}: np.load; read arrays through core.arrays"
                )


def test_no_path_of_somebodys_machine() -> None:
    pattern = re.compile(r"""["'`( ](/(?:home|Users|root|work|tmp|mnt)/|[A-Z]:\\)""")
    for path in [*modules(), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
        found = pattern.search(path.read_text(encoding="utf-8"))
        assert not found, f"{path}: {found and found.group()}"


def test_every_module_opens_with_what_lives_in_it() -> None:
    for path in modules():
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_what_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [one for some in (project["dependencies"], *extras) for one in some]
    declared = {re.split(r"[\[<>=;]", one)[0].lower().replace("-", "_") for one in wanted}
    imported = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).partition(".")[0])
    distributions = {
        "PIL": "pillow",
        "sklearn": "scikit_learn",
        "tensorboardX": "tensorboardx",
        "sc2": "burnysc2",
        "s2clientprotocol": "pys2clientprotocol",
    }
    imported -= {*sys.stdlib_module_names, "understudy", "jaxlib"}
    assert {distributions.get(name, name) for name in imported} <= declared
    (uvicorn,) = (one for one in wanted if one.startswith("uvicorn"))
    assert "<" in uvicorn, "its protocols are subclassed"


def test_no_page_installs_what_is_not_published() -> None:
    for path in [*modules(), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'pip install "?understudy', text), path


# --- what documents name ---------------------------------------------------------------------

_FILE = re.compile(r"(?<![\w./])((?:[\w.-]+/)+[\w-]+\.py)")


def found(path: str) -> Path | None:
    """A file as documents name it: from the root, the package, the tests or the documents; those
    of `my_bot` are what `understudy new sc2-bot my_bot` makes."""
    places = [ROOT / path, SOURCE / path, ROOT / "tests" / path, ROOT / "docs" / path]
    if path.startswith("my_bot/"):
        places.append(SOURCE / "adapters" / "sc2" / "template" / path.removeprefix("my_bot/"))
    return next((place for place in places if place.is_file()), None)


def missing_files(text: str) -> list[str]:
    return [name for name in _FILE.findall(text) if found(name) is None]


def test_every_file_that_a_page_names_exists() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages}
    assert len(_FILE.findall(texts["how-it-works.md"])) > 8
    lost = {name: missing_files(text) for name, text in texts.items()}
    assert {name: files for name, files in lost.items() if files} == {}


def test_every_name_in_the_glossary_exists() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    homes = [
        row.rstrip("| ").rpartition("| ")[2].strip("`")
        for row in page.splitlines()
        if row.startswith("| ") and not row.startswith("| word")
    ]
    assert len(homes) > 50
    assert not [home for home in homes if not is_defined(home)]
    assert not is_defined("match.duel.Nothing") and not is_defined("match.nothing")


def is_defined(home: str) -> bool:
    """A module of the package, or a name that is defined at the top of one."""
    base = SOURCE.joinpath(*home.split("."))
    if base.with_suffix(".py").is_file() or (base / "__init__.py").is_file():
        return True
    module, _, name = home.rpartition(".")
    path = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return bool(re.search(rf"^(class |def )?{name}\b", text, re.MULTILINE))


def test_a_public_class_name_means_one_thing() -> None:
    """Games have the same parts, so each may have its `State`; all other rooms share one space.

    The names in a stand-in are those of what it stands for."""
    homes: dict[str, list[str]] = {}
    for path in modules():
        room, *inner = path.relative_to(SOURCE).parts
        if "stand_in" in inner:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and room != "games":
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert len(homes) > 200
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_what_is_not_there_is_missed() -> None:
    assert missing_files("`training/train.py`, `run/gone.py`") == ["run/gone.py"]


def test_import_paths_of_earlier_documentation_still_work() -> None:
    for old, new in MOVED.items():
        with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
            again = importlib.reload(importlib.import_module(old))
        known = vars(importlib.import_module(new))
        renamed = {name: known[now] for name, now in RENAMED.get(old, {}).items()}
        assert public_names(vars(again)) == public_names(known) | renamed
    with pytest.raises(ModuleNotFoundError, match=r"understudy\.live\.nothing"):
        importlib.import_module("understudy.live.nothing")


def test_a_deprecated_path_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "always", "-m", "understudy.live.client", "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "--territories" in done.stdout
    assert "understudy.live.client is now understudy.adapters.example_client" in done.stderr


def public_names(names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in names.items() if not name.startswith("__")}


# --- what is documented --------------------------------------------------------------------------


def settings_page() -> str:
    """docs/settings.md, from the docstrings in core/config."""
    lines = [
        "# Settings",
        "",
        "Every setting with its default. A run keeps its own in `config.toml`; "
        "`--set learner.gamma=0.997` at the",
        'command line or `Understudy.open(..., settings={"learner.gamma": 0.997})` changes them. '
        "An unknown key or an impossible value is an error.",
        "",
        "Made from `core/config` by `python tests/test_architecture.py`.",
    ]
    for field in settings(Config):
        assert field.section
        lines += _settings_table(field.section, head=f"[{field.name}]", prefix=field.name)
    return "\n".join(lines) + "\n"


def _settings_table(section: type[Section], *, head: str, prefix: str) -> Iterator[str]:
    summary = (section.__doc__ or "").split(" (`")[0].rstrip(".")
    yield from ("", f"## `{head}`", "", f"{summary}.", "")
    yield from ("| setting | default | what it does |", "|---|---|---|")
    for one in settings(section):
        default = "" if one.default is None else f"`{json.dumps(one.default)}`"
        yield f"| `{prefix}.{one.name}` | {default or 'none'} | {one.words} |"
    for one in settings(section):
        if one.section:  # a list of tables, each with a name
            inner = f"{prefix}.{one.name}"
            yield from _settings_table(one.section, head=f"[[{inner}]]", prefix=f"{inner}.NAME")


def test_every_setting_is_documented() -> None:
    page = settings_page()
    assert "|  |" not in page, "a setting in core/config has no docstring"
    assert SETTINGS.read_text(encoding="utf-8") == page, (
        "docs/settings.md is out of date: python tests/test_architecture.py"
    )


def test_every_command_is_documented() -> None:
    typer = pytest.importorskip("typer")
    from understudy.cli.app import make_app

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    def check(command: Any, path: str) -> None:
        assert re.search(rf"^##+ {re.escape(path)}$", text, re.MULTILINE), (
            f"docs/cli.md has no section on `{path}`"
        )
        for name, inner in getattr(command, "commands", {}).items():
            check(inner, f"{path} {name}")

    for name, command in typer.main.get_command(make_app()).commands.items():
        check(command, f"understudy {name}")


if __name__ == "__main__":
    SETTINGS.write_text(settings_page(), encoding="utf-8")
