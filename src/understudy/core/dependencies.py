"""Optional libraries: which are installed, and the error that says how to install one."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator

from understudy.core.errors import MissingDependency


def install_line(extra: str) -> str:
    """How to install an extra of this package."""
    return f'pip install ".[{extra}]" in your clone'


def not_installed(*modules: str) -> list[str]:
    """Those of `modules` that are not installed. Imports none of them."""
    return [name for name in modules if importlib.util.find_spec(name) is None]


@contextlib.contextmanager
def needs(what: str, *, extra: str) -> Iterator[None]:
    """Raises MissingDependency if an import in its block fails.

    `what` begins the message; `{}` in it stands for the name of the missing module.

        with needs("pictures need Pillow", extra="draw"):
            from PIL import Image
    """
    try:
        yield
    except ImportError as error:
        raise MissingDependency(f"{what.format(error.name)}: {install_line(extra)}") from error


def needs_learner() -> contextlib.AbstractContextManager[None]:
    """`needs` for the libraries of a learner."""
    return needs("the learner needs {}", extra="learn")
