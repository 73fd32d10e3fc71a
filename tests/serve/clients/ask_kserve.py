"""Asks a server with kserve's client; run by its own Python: URL, key."""

import asyncio
import json
import sys

import numpy as np
from kserve import InferInput, InferRequest
from kserve.inference_client import InferenceRESTClient, RESTConfig

url, key = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"}


async def main():
    found = {}
    second = InferenceRESTClient(RESTConfig(protocol="v2"))
    found["live"] = await second.is_server_live(url, headers=headers)
    found["ready"] = await second.is_server_ready(url, headers=headers)
    found["model"] = await second.is_model_ready(url, "oracle", headers=headers)
    rows = np.array([[0.1], [0.9], [0.05]])
    answers = []
    for binary in (True, False):
        tensor = InferInput("rows", list(rows.shape), "FP64")
        tensor.set_data_from_numpy(rows, binary_data=binary)
        request = InferRequest("oracle", [tensor], request_id="k")
        own = dict(headers)  # the client writes into it, and leaves it so for the next request
        reply = await second.infer(url, request, model_name="oracle", headers=own)
        answers.append([reply.id, reply.outputs[0].as_numpy().tolist()])
    found["answers"] = answers
    first = InferenceRESTClient(RESTConfig(protocol="v1"))
    given = {"instances": rows.tolist()}
    found["live 1"] = await first.is_server_live(url, headers=headers)
    found["model 1"] = await first.is_model_ready(url, "oracle", headers=headers)
    found["answers 1"] = await first.infer(url, given, model_name="oracle", headers=headers)
    try:
        await first.infer(url, {"instances": [[1, 2]]}, model_name="oracle", headers=headers)
    except Exception as error:  # noqa: BLE001 - the client names no class of its own
        found["refusal"] = str(error)
    print(json.dumps(found))


asyncio.run(main())
