"""Data as JavaScript that a page loads from disk, where `fetch` is not allowed: each file makes one call.

Values are strict JSON, which is JavaScript, with every character escaped that could end a `<script>` element,
open an HTML comment or end a line in older engines. Foreign text stands in values only, never in keys.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

_ESCAPES = {c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def script_json(value: Any) -> str:
    """A JSON value that may stand in any script element or file; raises `ValueError` for NaN and infinities."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():  # they occur in JSON strings only
        text = text.replace(character, escape)  # many times faster than str.translate
    return text


def data_script(name: str, value: Any) -> bytes:
    """A script file that hands the page the data which it asked for under `name`."""
    return f"lensData({script_json(name)},{script_json(value)});\n".encode()


def source_hash(content: str) -> str:
    """An inline script or style as a Content-Security-Policy names it: `'sha256-…'`."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
