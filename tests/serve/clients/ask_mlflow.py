"""Asks a server with MLflow's scoring client; run by its own Python: URL."""

import json
import sys
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from mlflow.pyfunc.scoring_server.client import ScoringServerClient

where = urlsplit(sys.argv[1])
line = ScoringServerClient(where.hostname, where.port)
line.wait_server_ready(timeout=20)
line.ping()
frame = pd.DataFrame({"job": ["nurse", "baker"], "age": [0.9, 0.1]})
found = {"version": line.get_version()}


def answers(given):
    return line.invoke(given).get_predictions().iloc[:, 0].tolist()


found["frame"] = answers(frame)
found["list"] = answers([[0.9, "nurse"]])
found["array"] = answers(np.array([[0.9, "nurse"]], dtype=object))
try:
    line.invoke(pd.DataFrame({"age": [1.0]}))
except Exception as error:  # noqa: BLE001 - the client names no class of its own
    found["refusal"] = str(error)
print(json.dumps(found))
