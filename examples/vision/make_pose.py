"""Take BlazePose out of a package of npm: python examples/vision/make_pose.py mediapipe-pose-….tgz

    npm pack @mediapipe/pose

The file goes to examples/vision/pose, which git ignores. --model takes full or heavy in place of lite.
"""

from __future__ import annotations

import argparse
import tarfile
from pathlib import Path

FILE = Path(__file__).parent / "pose" / "landmarks" / "1" / "model.tflite"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path, help="the file that npm pack has written")
    parser.add_argument("--model", choices=("lite", "full", "heavy"), default="lite")
    options = parser.parse_args()
    name = f"package/pose_landmark_{options.model}.tflite"
    try:
        with tarfile.open(options.package) as package:
            file = package.extractfile(name)
            if file is None:
                raise KeyError(f"{name} is not a file")
            content = file.read()
    except (OSError, tarfile.TarError, KeyError) as error:
        raise SystemExit(
            f"'{options.package}' is not the package @mediapipe/pose with '{name}': {error}; get it with: "
            "npm pack @mediapipe/pose"
        ) from None
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_bytes(content)
    print(f"{FILE}: {len(content) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
