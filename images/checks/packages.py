"""Runs in a Python runtime: imports every promised package and does a little work with each; prints the versions as JSON."""
import io
import json
import sys
from importlib.metadata import version

import dateutil.parser
import docx
import httpx
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import openpyxl
import pandas as pd
import pydantic
import requests
import yaml
from PIL import Image

assert sys.version_info >= (3, 11), sys.version

frame = pd.DataFrame({"month": ["a", "b"], "sum": np.array([1, 2])})
sheet = io.BytesIO()
frame.to_excel(sheet, index=False)
assert openpyxl.load_workbook(sheet).active["B3"].value == 2
assert pd.read_excel(sheet)["sum"].sum() == 3

report = io.BytesIO()
frame.plot.bar(x="month", y="sum")
plt.savefig(report, format="pdf")
assert report.getvalue().startswith(b"%PDF"), matplotlib.get_backend()

letter = docx.Document()
letter.add_paragraph("text")
letter.save(io.BytesIO())

image = io.BytesIO()
Image.new("RGB", (2, 2)).save(image, format="PNG")


class Row(pydantic.BaseModel):
    when: str
    total: int


row = Row.model_validate(yaml.safe_load("{when: '2026-01-02', total: '3'}"))
assert dateutil.parser.isoparse(row.when).year == 2026
assert requests.Request("GET", "https://example.com", params={"a": "b"}).prepare().url == "https://example.com/?a=b"
assert httpx.Request("GET", "https://example.com", params={"a": "b"}).url.query == b"a=b"

NAMES = "requests httpx pydantic pyyaml python-dateutil pandas numpy matplotlib openpyxl python-docx pillow".split()
json.dump({"python": sys.version.split()[0], **{name: version(name) for name in NAMES}}, sys.stdout)
