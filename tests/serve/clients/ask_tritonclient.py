"""Asks a server with tritonclient; run by its own Python: URL, key."""

import json
import sys

import numpy as np
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

url, key = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"}
line = client.InferenceServerClient(url.removeprefix("http://"))
found = {}
found["live"], found["ready"] = line.is_server_live(headers), line.is_server_ready(headers)
found["model"] = [line.is_model_ready("oracle", version, headers) for version in ("", "1")] + [
    line.is_model_ready("none", "", headers)
]
found["server"] = line.get_server_metadata(headers)["name"]
found["metadata"] = line.get_model_metadata("oracle", headers=headers)["inputs"]
found["index"] = [one["name"] for one in line.get_model_repository_index(headers)]

rows = np.array([[0.1], [0.9], [np.nan]])


def asked(model, inputs, **more):
    own = dict(headers)  # the client writes into it, and leaves it so for the next request
    return line.infer(model, inputs, headers=own, **more).as_numpy("answer").tolist()


def tensor(name, table, kind, *, binary):
    made = client.InferInput(name, list(table.shape), kind)
    made.set_data_from_numpy(table, binary_data=binary)
    return made


for binary in (True, False):
    inputs = [tensor("rows", rows, "FP64", binary=binary)]
    wanted = [client.InferRequestedOutput("answer", binary_data=binary)]
    found[f"oracle {binary}"] = [
        asked("oracle", inputs),
        asked("oracle", inputs, outputs=wanted, model_version="1", request_id=f"t{binary}"),
        asked("oracle", inputs, request_compression_algorithm="gzip", priority=1, timeout=9_000),
    ]
    words = np.array([["nurse"], ["baker"]], dtype=object)
    inputs = [
        tensor("job", words, "BYTES", binary=binary),
        tensor("age", np.array([[0.9], [0.1]], dtype=np.float32), "FP32", binary=binary),
    ]
    answers = asked("model", inputs)
    found[f"model {binary}"] = [one.decode() for one in answers]

refusals = []
for call in (
    lambda: asked("oracle", [tensor("rows", np.zeros((1, 2)), "FP64", binary=True)]),
    lambda: line.infer("oracle", [tensor("rows", rows, "FP64", binary=True)]),
    lambda: line.get_model_config("oracle", headers=headers),
    lambda: line.get_inference_statistics("oracle", headers=headers),
):
    try:
        call()
    except InferenceServerException as error:
        refusals.append([error.status(), error.message()])
found["refusals"] = refusals
print(json.dumps(found))
