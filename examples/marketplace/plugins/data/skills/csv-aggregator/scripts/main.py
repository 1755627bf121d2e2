"""Aggregates CSV files and writes a Word report.

Arguments: CSV files. Standard input: the rules as JSON (references/column-mapping.md).
Standard output: one JSON object. Log lines go to standard error.
"""

import json
import logging
import os
import sys
from pathlib import Path

import pandas as pd
from docx import Document
from docx.shared import Cm

FUNCTIONS = {"sum", "mean", "min", "max", "count"}
NUMERIC = FUNCTIONS - {"count"}
log = logging.getLogger("csv-aggregator")


class RuleError(Exception):
    """The rules do not fit the files; the text is for the user."""


def to_numbers(column: pd.Series) -> pd.Series:
    filled = column.dropna()
    if len(filled) and filled.str.fullmatch(r"-?\d+,\d+").all():
        column = column.str.replace(",", ".", regex=False)
    try:
        return pd.to_numeric(column)
    except ValueError as error:
        raise RuleError(f"column {column.name!r} has a value that is not a number: {error}") from error


def read(paths: list[str], rename: dict[str, str]) -> pd.DataFrame:
    frames = []
    for path in paths:
        frame = pd.read_csv(path, dtype=str, sep=None, engine="python")
        frame.columns = [str(name).strip() for name in frame.columns]
        frames.append(frame.rename(columns=rename))
        log.info("%s: %d rows", path, len(frame))
    return pd.concat(frames, ignore_index=True)


def aggregate(data: pd.DataFrame, group_by: list[str], rules: dict[str, str]) -> tuple[pd.DataFrame, int]:
    missing = [name for name in [*group_by, *rules] if name not in data.columns]
    if missing:
        raise RuleError(f"no column {', '.join(missing)}; the files have {', '.join(data.columns)}")
    unknown = sorted(set(rules.values()) - FUNCTIONS)
    if unknown:
        raise RuleError(f"unknown rule {', '.join(unknown)}; use one of {', '.join(sorted(FUNCTIONS))}")
    if not group_by or not rules:
        raise RuleError("give at least one column in group_by and one in rules")
    kept = data.dropna(subset=group_by).copy()
    for name, function in rules.items():
        if function in NUMERIC:
            kept[name] = to_numbers(kept[name])
    result = kept.groupby(group_by, sort=True, as_index=False).agg(rules)
    return result, len(data) - len(kept)


def write_report(skill_dir: Path, result: pd.DataFrame, values: dict[str, object]) -> Path:
    document = Document()
    document.add_picture(str(skill_dir / "assets" / "logo.png"), width=Cm(1.5))
    template = (skill_dir / "assets" / "report-template.md").read_text(encoding="utf-8")
    for block in filter(None, (part.strip() for part in template.split("\n\n"))):
        if block == "{table}":
            table = document.add_table(rows=1, cols=len(result.columns), style="Table Grid")
            for cell, name in zip(table.rows[0].cells, result.columns):
                cell.text = str(name)
            for row in result.itertuples(index=False):
                for cell, value in zip(table.add_row().cells, row):
                    cell.text = f"{value:,.2f}" if isinstance(value, float) else str(value)
        elif block.startswith("# "):
            document.add_heading(block[2:].format(**values), level=1)
        else:
            document.add_paragraph(block.format(**values))
    target = skill_dir / "out" / "report.docx"
    target.parent.mkdir(exist_ok=True)
    document.save(str(target))
    return target


def main() -> int:
    logging.basicConfig(stream=sys.stderr, level=os.environ.get("LOG_LEVEL", "INFO"))
    skill_dir = Path(os.environ["TFROBOT_SKILL_DIR"])
    paths = sys.argv[1:]
    try:
        if not paths:
            raise RuleError("give at least one CSV file as argument")
        rules = json.load(sys.stdin)
        if not isinstance(rules, dict):
            raise RuleError("the rules must be one JSON object with group_by and rules")
        data = read(paths, rules.get("rename", {}))
        result, skipped = aggregate(data, rules.get("group_by", []), rules.get("rules", {}))
    except (RuleError, OSError, json.JSONDecodeError, pd.errors.ParserError) as error:
        json.dump({"error": str(error)}, sys.stdout)
        return 1
    values = {
        "title": os.environ.get("REPORT_TITLE", "Report"),
        "session": os.environ.get("TFROBOT_SESSION_ID", "unknown"),
        "files": len(paths),
        "rows_read": len(data),
        "rows_skipped": skipped,
    }
    target = write_report(skill_dir, result, values)
    json.dump(
        {"rows_read": len(data), "rows_skipped": skipped, "groups": len(result), "output_file": str(target)},
        sys.stdout,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
