"""The standard's own schema of SARIF 2.1.0 (errata 01), as published beside it.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json
"""

import json
from pathlib import Path

from jsonschema import Draft4Validator, FormatChecker

SCHEMA = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text())
VALIDATOR = Draft4Validator(SCHEMA, format_checker=FormatChecker())


def faults(document):
    """What in `document` the schema does not allow: the place and the reason, a line each."""
    return [f"{e.json_path}: {e.message}" for e in VALIDATOR.iter_errors(document)]
