"""The findings of a verification, as JSON."""

from __future__ import annotations

from pathlib import Path

from castsim.evidence.verification import PartProgress, VerificationRecord
from castsim.isa.formats import Format
from castsim.numerics import value_of
from castsim.reports.documents import VERSIONS, Document


def verify_document(record: VerificationRecord, path: Path | None) -> Document:
    """Return the record, where it is kept, and the mismatches with their bits and numbers."""
    details = [detail for one in record.progress for detail in mismatch_details(one)]
    return {
        **record.document(),
        "schema_version": VERSIONS["verify"],  # of the command's document, not of the record
        "record": None if path is None else str(path),
        "mismatch_details": [
            {name: _value(text) if text and name.endswith("_value") else text for name, text in each.items()}
            for each in details
        ],
    }


def _value(text: str) -> int | float | str:
    """Return what `number_text` spells as a number; `nan`, `inf`, `-inf` and `no code` stay words."""
    if text.lstrip("-").isdigit():
        return int(text)
    return text if text.lstrip("-").isalpha() or " " in text else float(text)


def mismatch_details(one: PartProgress) -> list[dict[str, str | None]]:
    """Return the mismatches kept of a part: mode, input bits and value, both outputs as bits and values."""
    src, dst = one.part.source, one.part.destination
    return [
        {
            "src": src.name,
            "dst": dst.name,
            "rounding": str(one.part.rounding),
            "overflow": str(one.part.overflow),
            "tier": one.part.tier,
            "against": one.part.against,
            "input_bits": bits_text(mismatch.code, src),
            "input_value": number_text(mismatch.code, src),
            "random_word": None if mismatch.random is None else f"0x{mismatch.random:08x}",
            "output_bits": bits_text(mismatch.result, dst),
            "output_value": number_text(mismatch.result, dst),
            "expected_bits": bits_text(mismatch.expected, dst),
            "expected_value": number_text(mismatch.expected, dst),
        }
        for mismatch in one.first
    ]


def bits_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, with at least as many digits as the format has."""
    return f"0x{code:0{-(-fmt.bits // 4)}x}"


def number_text(code: int, fmt: Format) -> str:
    """Return the number a code stands for, to 17 significant digits; `no code` if it is not a code of the format."""
    if code >> fmt.storage_bits or (code >> fmt.bits and fmt.bits < 8):
        return "no code"
    value = value_of(code, fmt)
    if isinstance(value, float):
        return str(value)
    return str(value.numerator) if value.denominator == 1 and abs(value) < 10**20 else repr(float(value))
