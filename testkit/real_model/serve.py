#!/usr/bin/env python3
"""Serve a GGUF file over the OpenAI API on loopback with llama.cpp's own server.

    serve.py MODEL.gguf PORT [CONTEXT]

One thread unless THREADS says otherwise: with more, a busy machine can stall. Ready when GET /health answers 200; ends
with the process, or when its standard input does.
"""
import os
import sys

import xllamacpp

if len(sys.argv) < 3:
    sys.exit(__doc__)
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.n_ctx = int(sys.argv[3]) if len(sys.argv) > 3 else 8192
params.n_parallel = 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(os.environ.get("THREADS", "1"))
params.use_jinja, params.warmup, params.verbosity = True, False, 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
# Whoever started it holds the other end: it does not outlive them.
sys.stdin.read()
os._exit(0)
