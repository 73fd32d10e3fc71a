"""Asks a server with ``mlserver infer``; run by its own Python: URL, key."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from mlserver.codecs import PandasCodec

url, key = sys.argv[1:]
program = str(Path(sys.executable).with_name("mlserver"))
frame = pd.DataFrame(
    {"age": [0.9, 0.1, None], "job": pd.Series(["nurse", "baker", "baker"], dtype=object)}
)
rows = {"inputs": [{"name": "rows", "shape": [2, 1], "datatype": "FP64", "data": [0.1, 0.9]}]}
given = {"oracle": rows}
encoded = PandasCodec.encode_request(frame.iloc[:2], use_bytes=False)
given["model"] = json.loads(encoded.model_dump_json(exclude_none=True))
found = {}
with tempfile.TemporaryDirectory() as folder:
    # Its answers are always asked for as bytes; the rows of one of both requests are, too.
    for model, form in (("oracle", ["--binary-data"]), ("model", [])):
        source, target = Path(folder, "in.jsonl"), Path(folder, "out.jsonl")
        source.write_text(json.dumps(given[model]) + "\n")
        words = [program, "infer", "-u", url.removeprefix("http://"), "-m", model]
        words += ["-i", str(source), "-o", str(target), "-w", "1", *form]
        words += ["-H", f"Authorization: Bearer {key}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout[-2_000:] + done.stderr[-2_000:])
        reply = json.loads(target.read_text().splitlines()[0])
        found[model] = reply["outputs"][0]["data"]
print(json.dumps(found))
