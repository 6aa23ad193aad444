"""Uploads the exported model."""

from __future__ import annotations

import time
import urllib.parse
import urllib.request

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.ground import arguments
from hookbridge.ground.arguments import count, seconds
from hookbridge.ground.protocols import Logs
from hookbridge.jobs.callbacks.ready_made import OfSavedModel

_HTTP = ("http://", "https://")
_TIMEOUT_SECS = 60.0
# A reader that finds this file takes the model for complete, so it is sent last.
_LAST = "saved_model.pb"


class ModelUploader(OfSavedModel):
    """Uploads a SavedModel at the end of the training.

    Give it after the `SavedModelExporter`. It works once, in `on_train_end`, on the
    thread of the loop, which waits for it. A failed upload is logged and raises
    nothing: the local model stays. Its role is `"chief"`.

    Args:
      remote_url: where the files go: a folder, `gs://`, `s3://`, `hdfs://` or any other
        that `tf.io.gfile` knows; or `http://` and `https://`, with one PUT for each
        file.
      path: the folder to upload; None takes `params["saved_model_path"]`.
      retries: how often a file is sent again.
      wait_secs: how long to wait before the first retry; each further one waits twice
        as long.

    Attributes:
      error: the error of the last upload, or None.

    Raises:
      errors.InvalidArgumentError: `remote_url` or `path` is not text, nothing can
        be sent to `remote_url`, `retries` or `wait_secs` is negative or not a number,
        or `on_train_begin` finds neither `path` nor the entry of `params`.
    """

    def __init__(
        self,
        remote_url: str,
        path: str | None = None,
        *,
        retries: int = 3,
        wait_secs: float = 1.0,
    ) -> None:
        super().__init__(path)
        self._url = arguments.path("remote_url", remote_url, "a folder or a URL")
        _check_scheme(self._url)
        self._retries = count("retries", retries, least=0)
        self._wait_secs = seconds("wait_secs", wait_secs)
        self.error: Exception | None = None

    def written_folders(self) -> list[str]:
        return [self._url]

    def on_train_end(self, logs: Logs = None) -> None:
        folder = self.folder()
        self.error = None
        try:
            files = files_below(folder)
            if not files:
                raise FileNotFoundError(
                    f"There is no model in {folder!r}; expected the files of a "
                    "SavedModel. Put a `SavedModelExporter` before this callback in "
                    "the list."
                )
            for file in files:
                self._send(folder, file)
        except (OSError, tf.errors.OpError) as e:
            self.error = e
            logging.error(
                "hookbridge: the upload to %s failed: %s. The model is in %s.",
                self._url,
                e,
                folder,
            )

    def _send(self, folder: str, file: str) -> None:
        for attempt in range(self._retries + 1):
            try:
                send(folder, file, self._url)
                return
            except (OSError, tf.errors.OpError) as e:
                if attempt == self._retries:
                    raise
                logging.warning("hookbridge: %s was not uploaded: %s", file, e)
                time.sleep(self._wait_secs * 2**attempt)


def _check_scheme(url: str) -> None:
    """Raise for a URL that nothing could be sent to."""
    scheme, is_url, _ = url.partition("://")
    known = tf.io.gfile.get_registered_schemes()
    if is_url and not url.startswith(_HTTP) and scheme not in known:
        listed = ", ".join(f"`{s}://`" for s in sorted(filter(None, known)))
        raise errors.InvalidArgumentError(
            f"Received `remote_url={url!r}`, whose scheme `{scheme}://` TensorFlow "
            f"does not know; expected a folder, `http://`, `https://` or {listed}. "
            "Import the package that adds a file system, such as `tensorflow_io`, "
            "before you make the callback."
        )


def files_below(folder: str) -> list[str]:
    """Return the paths of all files relative to `folder`, in the order to send."""
    files = []
    for directory, _, names in tf.io.gfile.walk(folder):
        below = directory[len(folder) :].strip("/")
        files += [f"{below}/{name}" if below else name for name in names]
    return sorted(files, key=lambda path: (path == _LAST, path))


def send(folder: str, file: str, url: str) -> None:
    """Send a file below `folder` to `url`: by PUT, or through `tf.io.gfile`."""
    source = tf.io.gfile.join(folder, file)
    url = url.rstrip("/")
    if url.startswith(_HTTP):
        with tf.io.gfile.GFile(source, "rb") as opened:
            request = urllib.request.Request(
                f"{url}/{urllib.parse.quote(file)}", data=opened.read(), method="PUT"
            )
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECS):
            return
    target = tf.io.gfile.join(url, file)
    tf.io.gfile.makedirs(target.rpartition("/")[0])
    tf.io.gfile.copy(source, target, overwrite=True)
