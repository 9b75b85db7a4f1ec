"""Makes `attention_cases` importable: test files are imported by path, so that their folder is on no search path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
