"""A package that imports no TensorFlow."""

import sys

from plain import part

print(__name__, __package__, __spec__.name, sys.argv[1:], part.name(), sys.path[0])
sys.exit("tensorflow" in sys.modules)
