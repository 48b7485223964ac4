"""Writes docs/reference/json-schemas.json from the models of the documents: `python tests json_schemas`."""

from __future__ import annotations

import json

from kit.paths import ROOT

from castsim.tools.reference.schema import every_command, form_schema

SCHEMAS = ROOT / "docs" / "reference" / "json-schemas.json"


def bundle() -> str:
    """Return one JSON Schema that holds every object, a line each, with the documents of each command."""
    definitions = {
        name: each
        for _, forms in every_command()
        for form in forms
        for name, each in form_schema(form)["$defs"].items()
    }
    documents = {command: [{"$ref": f"#/$defs/{form.TITLE}"} for form in forms] for command, forms in every_command()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "documents": documents}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in sorted(definitions.items()))
    return f'{json.dumps(head, indent=1)[:-2]},\n "$defs": {{\n{lines}\n }}\n}}\n'


if __name__ == "__main__":
    SCHEMAS.write_text(bundle(), encoding="utf-8")
