"""Copies the files of a folder to another place."""

from __future__ import annotations

import urllib.parse
import urllib.request

import tensorflow as tf

HTTP = ("http://", "https://")
TIMEOUT_SECS = 60.0
# A reader that finds this file takes the model for complete, so it is sent last.
_LAST = "saved_model.pb"


def files_below(folder: str) -> list[str]:
    """Paths of all files relative to `folder`, in the order in which to send them."""
    files = []
    for place, _, names in tf.io.gfile.walk(folder):
        below = place[len(folder) :].strip("/")
        files += [f"{below}/{name}" if below else name for name in names]
    return sorted(files, key=lambda path: (path == _LAST, path))


def send(folder: str, file: str, url: str) -> None:
    """Sends a file below `folder` to `url`: by PUT, or through `tf.io.gfile`."""
    source = tf.io.gfile.join(folder, file)
    url = url.rstrip("/")
    if url.startswith(HTTP):
        with tf.io.gfile.GFile(source, "rb") as opened:
            request = urllib.request.Request(
                f"{url}/{urllib.parse.quote(file)}", data=opened.read(), method="PUT"
            )
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECS):
            return
    target = tf.io.gfile.join(url, file)
    tf.io.gfile.makedirs(target.rpartition("/")[0])
    tf.io.gfile.copy(source, target, overwrite=True)
