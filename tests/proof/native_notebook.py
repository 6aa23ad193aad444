"""Runs a notebook as Jupyter does, without hookbridge. Python 3.7 has to read it."""

# mypy: disable-error-code="no-untyped-call"

import os
import sys

import nbclient
import nbformat

path = os.path.abspath(sys.argv[1])
where = {"metadata": {"path": os.path.dirname(path)}}
notebook = nbformat.read(path, as_version=4)
nbclient.NotebookClient(notebook, timeout=1200, resources=where).execute()
