"""JupyterLab's own start, without a grammar that costs it 1.6 s and that nobody asks for.

    python -m labkit.services.jupyter.start [OPTIONS OF JUPYTERLAB]

jsonschema imports rfc3987_syntax if it can, which builds a parser for internationalised addresses whenever it is
imported. This module must not be imported: it changes what its process can import.
"""

import sys

if __name__ == "__main__":
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # how Python is told that there is no such module
    from jupyterlab.labapp import main

    sys.exit(main())
