"""Makes thumbnails of a video at evenly spaced times.

Arguments: the video, and optionally the number of frames (1 to 8). Standard output: one JSON object.
"""

import base64
import io
import json
import os
import subprocess
import sys
from pathlib import Path

from PIL import Image

TIMEOUT_SECONDS = 120
THUMB = (320, 320)


def run(arguments: list[str]) -> bytes:
    done = subprocess.run(arguments, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ValueError(last[0] if last else f"{arguments[0]} failed")
    return done.stdout


def duration(video: Path) -> float:
    out = run(["ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", f"file:{video}"])
    return float(out)


def frame(video: Path, second: float, target: Path) -> dict[str, object]:
    seek = ["-ss", f"{second:.2f}", "-i", f"file:{video}"]
    run(["ffmpeg", "-v", "error", "-y", *seek, "-frames:v", "1", "-q:v", "3", f"file:{target}"])
    with Image.open(target) as image:
        size = image.size
        image.thumbnail(THUMB)
        buffer = io.BytesIO()
        image.convert("RGB").save(buffer, "JPEG", quality=80)
    return {
        "second": round(second, 2),
        "width": size[0],
        "height": size[1],
        "file": str(target),
        "thumbnail_jpeg_base64": base64.b64encode(buffer.getvalue()).decode(),
    }


def main() -> int:
    try:
        video = Path(sys.argv[1]).resolve(strict=True)
        count = int(sys.argv[2]) if len(sys.argv) > 2 else 3
        if not 1 <= count <= 8:
            raise ValueError("the number of frames must be 1 to 8")
        out = Path(os.environ["TFROBOT_SKILL_DIR"]) / "out"
        out.mkdir(exist_ok=True)
        length = duration(video)
        times = [length * (index + 0.5) / count for index in range(count)]
        frames = [frame(video, second, out / f"frame-{index + 1}.jpg") for index, second in enumerate(times)]
    except (IndexError, OSError, ValueError, subprocess.TimeoutExpired) as error:
        json.dump({"error": str(error) if sys.argv[1:] else "give the video as argument"}, sys.stdout)
        return 1
    json.dump({"duration_seconds": round(length, 2), "frames": frames}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
