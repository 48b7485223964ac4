"""`python -m tests.fuzz`: a campaign."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from fuzz.campaign import main

sys.exit(main())
