"""Metadata, packages and extras of hookbridge (the only copy)."""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
INIT = (HERE / "hookbridge" / "__init__.py").read_text(encoding="utf-8")

# The link `hookbridge/adapters` leads to `adapters/`. Where it is a folder, setuptools
# needs no map, and type checkers find what an editable install has. A checkout without
# symbolic links has a text file there, and needs the map.
MAP = {"hookbridge.adapters": "adapters"}
PACKAGE_DIR = {"": "."} if (HERE / "hookbridge" / "adapters").is_dir() else MAP

# Found below both folders: a search would not follow the link.
PACKAGES = [
    *(p for p in find_packages(include=["hookbridge*"]) if ".adapters" not in p),
    "hookbridge.adapters",
    *(f"hookbridge.adapters.{name}" for name in find_packages("adapters")),
]

EXTRAS = {
    # Not a requirement of the package: `tf-nightly`, `tensorflow-cpu` and others hold
    # TensorFlow too, and pip would install a second one over them.
    "tensorflow": ["tensorflow>=2.15"],
    # The last release of tensorflow-estimator. It is pure Python and lists no
    # requirements; beside TensorFlow it needs tf_keras.
    "estimator": ["tensorflow-estimator==2.15.0", "tf_keras"],
    "keras2": ["tf_keras"],
    # The TensorBoard callback writes with it; TF >= 2.20 does not install it.
    "tensorboard": ["tensorboard"],
    # Implements tf.contrib's slim, layers, framework, losses and metrics.
    "contrib": ["tf_slim>=1.1"],
    # For `hookbridge cluster --config=config.yaml` and the manifests of Kubernetes.
    "cluster": ["PyYAML"],
    # For `hookbridge run a.ipynb`, if the notebook has magics.
    "notebooks": ["ipython"],
    "test": [
        "pytest>=8",
        "pytest-timeout>=2.3",
        "hypothesis>=6.100",
        "build>=1.2",
        "setuptools>=70",
        # As in `tensorboard`.
        "tensorboard",
        # As in `cluster`.
        "PyYAML",
        "jsonschema",
        # Keras makes pictures of models with it.
        "pydot",
        # Code with tf.contrib is rewritten to use it.
        "tf_slim",
        # To execute the notebooks of the examples.
        "nbclient",
        "ipykernel",
        # Its Keras callback is tested in both loops.
        "tqdm",
    ],
    # The documentation site: `make docs`.
    "docs": ["mkdocs-material==9.*", "mkdocstrings[python]>=1.0"],
    "bench": ["matplotlib>=3.8"],
    # ruff and mypy are pinned: a new release may format or judge differently.
    "lint": ["ruff==0.17.*", "mypy==2.4.*", "import-linter>=2.1"],
    "release": ["build>=1.2", "twine>=6"],
}

setup(
    name="tf-hookbridge",  # another project has the name `hookbridge`
    version=re.findall(r'^__version__ = "(.+)"$', INIT, re.M)[0],
    description=(
        "One set of SessionRunHooks and Keras Callbacks for MonitoredTrainingSession,"
        " Estimator and Model.fit"
    ),
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=PACKAGES,
    package_dir=PACKAGE_DIR,
    package_data={
        # The private names that the Estimator package reads.
        "hookbridge.estimator": ["needs.txt"],
        "hookbridge": ["py.typed"],
        # A link to docs, for `hookbridge docs` in checkouts and installed packages.
        "hookbridge.cli": ["pages/*.md", "pages/*/*.md"],
        # A link to examples/data, for checkouts and installed packages alike.
        "hookbridge.jobs.demo": ["data/*"],
        "hookbridge.insight.report": ["page.html"],
        # The names of each TensorFlow, and the names of tf.contrib that `run` provides.
        "hookbridge.old_programs.names": ["data/*.json"],
    },
    install_requires=["numpy", "absl-py"],
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["hookbridge=hookbridge.cli:main"]},
    classifiers=[
        "Intended Audience :: Developers",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
