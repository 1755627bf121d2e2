"""Writes a one-page PDF about one month of a workbook of bills.

Arguments: the workbook, and optionally the month as YYYY-MM. Standard output: one JSON object.
"""

import json
import os
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd

COLUMNS = ["date", "category", "amount"]


def load(path: str) -> tuple[pd.DataFrame, int]:
    sheet = pd.read_excel(path, sheet_name=0)
    missing = [name for name in COLUMNS if name not in sheet.columns]
    if missing:
        raise ValueError(f"the first sheet has no column {', '.join(missing)}")
    bills = sheet[COLUMNS].copy()
    bills["date"] = pd.to_datetime(bills["date"], errors="coerce")
    bills["amount"] = pd.to_numeric(bills["amount"], errors="coerce")
    bills["category"] = bills["category"].fillna("other").astype(str)
    usable = bills.dropna(subset=["date", "amount"])
    if usable.empty:
        raise ValueError("no row has both a date and an amount")
    return usable.assign(month=usable["date"].dt.to_period("M")), len(bills) - len(usable)


def draw(target: Path, month: str, shares: pd.Series, totals: pd.Series) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    figure.suptitle(f"Bills of {month}")
    shares.sort_values().plot.barh(ax=left, title="By category")
    left.set_ylabel("")
    recent = totals.tail(12)
    right.plot([str(period) for period in recent.index], recent.values, marker="o")
    right.set_title("Last twelve months")
    right.tick_params(axis="x", rotation=60)
    target.parent.mkdir(exist_ok=True)
    figure.savefig(target)


def main() -> int:
    try:
        bills, skipped = load(sys.argv[1])
        totals = bills.groupby("month")["amount"].sum()
        month = pd.Period(sys.argv[2], "M") if len(sys.argv) > 2 else totals.index.max()
        if month not in totals.index:
            raise ValueError(f"no bill in {month}; the sheet covers {totals.index.min()} to {totals.index.max()}")
    except (IndexError, OSError, ValueError) as error:
        json.dump({"error": str(error) if sys.argv[1:] else "give the workbook as argument"}, sys.stdout)
        return 1
    shares = bills[bills["month"] == month].groupby("category")["amount"].sum()
    target = Path(os.environ["TFROBOT_SKILL_DIR"]) / "out" / f"report-{month}.pdf"
    draw(target, str(month), shares, totals)
    before = totals.get(month - 1)
    json.dump(
        {
            "month": str(month),
            "total": round(float(totals[month]), 2),
            "previous_total": None if before is None else round(float(before), 2),
            "categories": {name: round(float(value), 2) for name, value in shares.items()},
            "skipped": skipped,
            "output_file": str(target),
        },
        sys.stdout,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
