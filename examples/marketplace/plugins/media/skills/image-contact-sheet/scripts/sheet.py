"""Writes a contact sheet of the images given as arguments. Standard output: one JSON object."""

import json
import os
import sys
from pathlib import Path

from PIL import Image, ImageDraw

CELL, LABEL, COLUMNS, LIMIT = 200, 24, 6, 64


def main() -> int:
    paths = [Path(argument) for argument in sys.argv[1 : LIMIT + 1]]
    if not paths:
        json.dump({"error": "give 1 to 64 images as arguments"}, sys.stdout)
        return 1
    rows = -(-len(paths) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * CELL, rows * (CELL + LABEL)), "white")
    draw = ImageDraw.Draw(sheet)
    unreadable = []
    for index, path in enumerate(paths):
        left, top = index % COLUMNS * CELL, index // COLUMNS * (CELL + LABEL)
        try:
            with Image.open(path) as image:
                image.thumbnail((CELL - 8, CELL - 8))
                sheet.paste(image.convert("RGB"), (left + 4, top + 4))
        except OSError:
            unreadable.append(str(path))
        draw.text((left + 4, top + CELL), path.name[:28], fill="black")
    target = Path(os.environ["TFROBOT_SKILL_DIR"]) / "out" / "sheet.png"
    target.parent.mkdir(exist_ok=True)
    sheet.save(target)
    json.dump({"images": len(paths) - len(unreadable), "unreadable": unreadable}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
