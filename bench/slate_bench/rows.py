"""What was measured, one JSON object a line. row.schema.json says what a row of each kind holds; the rows are appended
to, so that several runs can share a file, and each knows which run it is of."""

import datetime
import json
import os
import uuid

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "row.schema.json")


class Writer:
    """Appends rows to a file, each with who measured it, where, and how fast the GPU's clocks were."""

    def __init__(self, path, machine, command, device, seed):
        self.path = path
        self.machine = machine
        self.run = uuid.uuid4().hex[:12]
        self.common = {
            "command": command,
            "device": device,
            "seed": seed,
            "commit": machine.commit,
            "machine": machine.facts,
        }
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self.file = open(path, "a")

    def write(self, kind, **fields):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        row = dict({"kind": kind, "run": self.run, "time": now}, **fields, **self.common, clocks=self.machine.clocks())
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        return row

    def close(self):
        self.file.close()


def read(paths):
    """All rows of the files, in order."""
    rows = []
    for path in paths:
        with open(path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    rows.append(json.loads(line))
                except ValueError as error:
                    raise ValueError("%s:%d: not a row: %s" % (path, number, error)) from error
    return rows


def complaints(rows):
    """What is wrong with them by the schema, a sentence each. Needs jsonschema."""
    import jsonschema

    with open(SCHEMA) as file:
        schema = json.load(file)
    validators = {
        kind: jsonschema.Draft7Validator(dict(schema["definitions"][kind], definitions=schema["definitions"]))
        for kind in schema["properties"]["kind"]["enum"]
    }
    common = jsonschema.Draft7Validator(schema)
    found = []
    for number, row in enumerate(rows, 1):
        errors = list(common.iter_errors(row))
        if row.get("kind") in validators:
            errors += validators[row["kind"]].iter_errors(row)
        found += [
            "row %d (%s): %s: %s" % (number, row.get("kind"), "/".join(map(str, error.path)), error.message)
            for error in errors
        ]
    return found
