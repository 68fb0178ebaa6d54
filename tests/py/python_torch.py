# torch, triton and ditron together in one process, where the corpus's environment is there (make corpus, scripts/setup-corpus).
# TIMEOUT: 240
import os
import subprocess
import sys
from pathlib import Path

environment = Path(os.environ["ROOT"]) / "build/deps/corpus"
if not (environment / "ready").exists():
    print("ok together # skip: there is no environment with torch and triton; scripts/setup-corpus makes it")
    sys.exit(0)
script = Path(__file__).with_name("_torch_together.py")
sys.exit(subprocess.run([environment / "bin/python", "-u", script], timeout=230).returncode)
